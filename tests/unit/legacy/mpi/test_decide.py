"""What follows for an MPIJob from one look: what tests/legacy/mpi compares with mpi-operator, and what it cannot."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from trainplane.api import tree as trees
from trainplane.api.legacy.kinds import MPI
from trainplane.legacy.decide import decide
from trainplane.legacy.decision import Observed, Ref, Settings
from trainplane.legacy.mpi import hosts, objects, pods
from trainplane.legacy.mpi.job import MPIJob
from trainplane.legacy.training import MOST_MADE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.api.tree import Tree
    from trainplane.legacy.decision import Decision

_NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
_AT = "2026-11-16T12:00:00Z"


def _job(*, status: Tree | None = None, workers: int = 2, **spec: Any) -> Tree:
    template = {"spec": {"containers": [{"name": "mpi", "image": "i"}]}}
    replicas = {"Launcher": {"template": template}, "Worker": {"replicas": workers, "template": template}}
    return {
        "apiVersion": MPI.api_version,
        "kind": "MPIJob",
        "metadata": {"name": "pi", "namespace": "team", "uid": "1"},
        "spec": {"mpiReplicaSpecs": replicas, **spec},
        **({"status": status} if status else {}),
    }


def _worker(job: Tree, index: int, phase: str = "Running", **metadata: Any) -> Tree:
    """Return a worker's pod as the operator's mirror has it: without kind and spec."""
    pod = pods.worker(MPIJob(job), index, Settings())
    return {"metadata": {**pod["metadata"], "uid": f"w{index}", **metadata}, "status": {"phase": phase}}


def _launcher(job: Tree, status: Tree | None = None, **metadata: Any) -> Tree:
    made = pods.launcher(MPIJob(job), Settings())
    return {**made, "metadata": {**made["metadata"], "uid": "l", **metadata}, "status": status or {}}


def _look(job: Tree, pods_: Iterable[Tree] = (), *others: Tree, settings: Settings | None = None) -> Decision:
    return decide(MPI, Observed(job, tuple(pods_), (), others, _NOW), settings or Settings())


def _names(decision: Decision) -> list[str]:
    return [one["metadata"]["name"] for one in decision.create]


def test_names_keys_and_hosts_come_with_the_first_pods() -> None:
    decision = _look(_job())
    assert [one["kind"] for one in decision.apply] == ["Service", "ConfigMap"]
    assert [(one.kind, one.name) for one in decision.once] == [("Secret", "pi-ssh")]
    assert _names(decision) == ["pi-worker-0", "pi-worker-1", "pi-launcher"]


def test_keys_are_drawn_for_each_job() -> None:
    (secret,) = _look(_job()).once
    first, second = secret.make(), secret.make()
    assert first["data"] != second["data"]
    assert first["data"].keys() == set(secret.keys)


def test_what_is_as_it_should_be_is_let_be() -> None:
    job = _job(status={"conditions": [{"type": "Created", "status": "True", "reason": "MPIJobCreated"}]})
    workers = [_worker(job, index) for index in range(2)]
    config = objects.config(MPIJob(job), [trees.get(one, "metadata", "name") for one in workers], "")
    secret = {"kind": "Secret", "metadata": {"name": "pi-ssh"}}
    seen = Observed(job, tuple(workers), (objects.service(MPIJob(job)),), (_launcher(job), config, secret), _NOW)
    decision = decide(MPI, seen, Settings())
    assert (decision.create, decision.once, decision.apply, decision.delete) == ((), (), (), ())


def test_a_large_job_is_made_in_several_looks() -> None:
    job = _job(workers=MOST_MADE + 1)
    first = [one for one in _names(_look(job)) if "worker" in one]
    assert len(first) == MOST_MADE
    seen = [_worker(job, index) for index in range(MOST_MADE)]
    assert _names(_look(job, seen, _launcher(job))) == [f"pi-worker-{MOST_MADE}"]


def test_hosts_that_run_are_found_as_they_come_and_go() -> None:
    job = _job(workers=3)
    seen = [_worker(job, 0), _worker(job, 1, "Pending"), _worker(job, 2)]
    (config,) = (one for one in _look(job, seen).apply if one["kind"] == "ConfigMap")
    assert config["data"][hosts.DISCOVER].splitlines() == [
        "#!/bin/sh",
        "echo pi-worker-0.pi.team.svc",
        "echo pi-worker-2.pi.team.svc",
    ]


def test_a_worker_on_its_way_out_keeps_its_name_until_it_is_gone() -> None:
    job = _job(workers=1)
    decision = _look(job, [_worker(job, 0, deletionTimestamp=_AT)], _launcher(job))
    assert decision.create == ()
    assert decision.delete == ()


def test_a_pod_that_goes_is_named_as_what_was_seen() -> None:
    job = _job(workers=1)
    assert _look(job, [_worker(job, 0), _worker(job, 1)], _launcher(job)).delete == (
        Ref("v1", "Pod", "pi-worker-1", "w1"),
    )


def test_a_suspended_job_keeps_neither_workers_nor_launcher() -> None:
    job = _job(runPolicy={"suspend": True})
    decision = _look(job, [_worker(job, 0), _worker(job, 1, "Failed")], _launcher(job))
    assert [one.name for one in decision.delete] == ["pi-worker-0", "pi-worker-1", "pi-launcher"]
    assert decision.create == ()


def test_pods_of_a_launcher_that_goes_are_counted_until_they_are_gone() -> None:
    job = _job(runPolicy={"suspend": True})
    pod = {
        "metadata": {"name": "pi-launcher-x", "labels": MPIJob(job).labels("launcher")},
        "status": {"phase": "Running"},
    }
    status = _look(job, [pod], _launcher(job, deletionTimestamp=_AT)).status
    assert status is not None
    assert status["replicaStatuses"]["Launcher"] == {"active": 1}


def test_a_launcher_that_goes_is_waited_for_before_the_next() -> None:
    job = _job()
    decision = _look(job, [_worker(job, 0), _worker(job, 1)], _launcher(job, deletionTimestamp=_AT))
    assert decision.create == ()


def test_a_resumed_job_starts_anew() -> None:
    held = [{"type": "Suspended", "status": "True", "reason": "MPIJobSuspended"}]
    decision = _look(_job(status={"startTime": "2026-11-16T10:00:00Z", "conditions": held}))
    assert decision.status is not None
    assert decision.status["startTime"] == _AT
    assert "pi-launcher" in _names(decision)


def test_the_last_words_of_a_launcher_are_passed_on_and_cut() -> None:
    job = _job(status={"conditions": [{"type": "Created", "status": "True", "reason": "MPIJobCreated"}]})
    gave_up = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "gave up"}
    pod = {
        "metadata": {"name": "pi-launcher-x", "labels": MPIJob(job).labels("launcher")},
        "status": {"phase": "Failed", "reason": "OOMKilled", "message": "x" * 2000},
    }
    decision = _look(job, [pod], _launcher(job, {"conditions": [gave_up]}))
    (told,) = decision.events
    assert told.reason == "BackoffLimitExceeded/OOMKilled"
    assert told.message.startswith("gave up: xxx")
    assert len(told.message) == 1024
    assert decision.status is not None
    assert decision.status["completionTime"] == _AT


def test_a_look_at_what_is_over_changes_nothing_more() -> None:
    ended = [{"type": "Succeeded", "status": "True", "reason": "MPIJobSucceeded"}]
    status = {"conditions": ended, "completionTime": _AT, "replicaStatuses": {"Worker": {}}}
    for clean in ("None", "All"):
        decision = _look(_job(status=status, runPolicy={"cleanPodPolicy": clean}))
        assert decision.status is None
        assert not any((decision.apply, decision.create, decision.delete))


def test_trouble_of_a_pod_is_told_of_its_job() -> None:
    job = _job(workers=1)
    waits = {"name": "mpi", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    pod = trees.put(_worker(job, 0, "Pending"), "status", "containerStatuses", value=[waits])
    assert any("no such image" in one.message for one in _look(job, [pod]).events)


def test_a_stored_job_that_could_not_run_is_told_of_and_let_be() -> None:
    decision = _look(_job(workers=2**31 - 1))
    (told,) = decision.events
    assert told.reason == "ValidationError"
    assert len(told.message) <= 1024
    assert (decision.create, decision.apply, decision.status) == ((), (), None)


@pytest.mark.parametrize("gate", [True, False])
def test_a_job_of_multikueue_is_run_here_only_where_nobody_reads_managed_by(gate: bool) -> None:
    job = _job(runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"})
    assert bool(_look(job, settings=Settings(job_managed_by=gate)).create) is not gate


def test_a_users_template_is_not_changed() -> None:
    job = _job()
    before = trees.copy(job)
    _look(job, settings=Settings(gang="volcano"))
    assert job == before
