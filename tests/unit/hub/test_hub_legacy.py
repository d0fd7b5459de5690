"""The hub server with older kinds: their view and their logs, beside TrainJobs of the same names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.unit.hub.hubstage import ROOT, HubStage, reference
from tests.unit.hub.legacy import MPI, PYTORCH, job, labels_of, put_copy, put_job, put_launcher, put_pod
from trainplane.api import names
from trainplane.hub.kinds import KINDS, TRAIN_JOB
from trainplane.kube.resource import PODS
from trainplane.resources import EVENTS, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from trainplane.hub.kinds import JobKind

TEAM = f"{ROOT}/namespaces/team"


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[HubStage]:
    async with HubStage(tmp_path, kinds=tuple(KINDS.values())) as running:
        yield running


def _run(stage: HubStage, kind: JobKind, lines: int, *, step: str = "master", first: int = 0) -> str:
    """Let a job run on the worker and print so many lines; return its uid."""
    uid = put_job(stage, kind)
    owner = put_copy(stage.worker, kind, uid)
    if step == "launcher":
        owner = put_launcher(stage.worker, owner)
    stage.print(put_pod(stage.worker, f"x-{step}-0", labels_of(kind, step), owner), lines, first)
    return uid


@pytest.mark.parametrize(("kind", "step"), [(PYTORCH, "master"), (MPI, "launcher"), (MPI, "worker")])
async def test_a_jobs_log_is_read_through_the_hub_and_outlives_it(stage: HubStage, kind: JobKind, step: str) -> None:
    _run(stage, kind, 20, step=step)
    path = f"{TEAM}/{kind.plural}/x/log"
    assert (await stage.until_log(20, path))[-1] == "line 19"
    stage.worker.remove(PODS, f"x-{step}-0", "team")
    stage.worker.remove(kind.resource, "x", "team")
    stage.hub.put(kind.resource, job(kind, condition="Succeeded"))
    assert (await stage.get(path)).text.count("\n") == 20
    stage.hub.remove(kind.resource, "x", "team")
    await stage.until(lambda: stage.jobs.get("team", "x", kind.name) is None)
    assert (await stage.get(path)).text.count("\n") == 20, "of the last one of that kind and name"


async def test_jobs_of_two_kinds_and_one_name_are_two_jobs(stage: HubStage) -> None:
    stage.put_job()
    stage.print(stage.put_pod(), 3)
    _run(stage, PYTORCH, 5, first=100)
    assert (await stage.until_log(3))[-1] == "line 2"
    assert (await stage.until_log(5, f"{TEAM}/pytorchjobs/x/log"))[0] == "line 100"
    pods = json.loads((await stage.get(f"{TEAM}/pytorchjobs/x/pods")).body)["items"]
    assert [pod["metadata"]["name"] for pod in pods] == ["x-master-0"]


async def test_the_view_lists_a_kind_with_its_clusters(stage: HubStage) -> None:
    stage.put_job("tune")
    _run(stage, PYTORCH, 1)
    await stage.until_log(1, f"{TEAM}/pytorchjobs/x/log")
    listed = json.loads((await stage.get(f"{TEAM}/pytorchjobs")).body)
    assert (listed["kind"], [item["metadata"]["name"] for item in listed["items"]]) == ("PyTorchJobList", ["x"])
    one = json.loads((await stage.get(f"{TEAM}/pytorchjobs/x")).body)
    assert one["kind"] == "PyTorchJob"
    status = one["status"]
    assert (status["cluster"], status["state"], status["readyPods"]) == ("worker1", "Running", 1)
    assert status["replicaStatuses"] == {"Worker": {"active": 1}}
    stage.hub.put(PYTORCH.resource, job(PYTORCH, condition="Succeeded"))
    ended = json.loads((await stage.get(f"{TEAM}/pytorchjobs/x")).body)["status"]
    assert (ended["state"], ended["placement"]) == ("Succeeded", "Finished")


async def test_rights_are_asked_for_the_kind(stage: HubStage) -> None:
    put_job(stage, MPI)
    await stage.get(f"{TEAM}/mpijobs/x/log", user="bob")
    assert [str(access) for user, access in stage.rules.asked if user.name == "bob"] == [
        'get mpijobs/log.hub.trainplane.dev "x" in the namespace "team"'
    ]


async def test_events_are_the_jobs_and_its_pods(stage: HubStage) -> None:
    uid = _run(stage, MPI, 1, step="launcher")
    await stage.until_log(1, f"{TEAM}/mpijobs/x/log")
    about = [("MPIJob", "x"), ("Job", "x-launcher"), ("Pod", "x-launcher-0"), ("Workload", f"w-{uid}")]
    others = [("TrainJob", "x"), ("JobSet", "x"), ("Job", "x-node-0"), ("PyTorchJob", "x"), ("Pod", "y-launcher-0")]
    for number, (kind, name) in enumerate([*about, *others]):
        involved = {"kind": kind, "name": name, "namespace": "team"}
        metadata = {"name": f"e{number}", "namespace": "team"}
        stage.worker.put(EVENTS, {"metadata": metadata, "involvedObject": involved, "reason": "R"})
    listed = json.loads((await stage.get(f"{TEAM}/mpijobs/x/events")).body)["items"]
    assert sorted((one["involvedObject"]["kind"], one["involvedObject"]["name"]) for one in listed) == sorted(about)


async def test_why_a_job_waits_is_told_in_its_kinds_words(stage: HubStage) -> None:
    tree = job(PYTORCH, local=True)
    tree["spec"]["runPolicy"]["suspend"] = True
    stage.hub.put(PYTORCH.resource, tree)
    (cause,) = json.loads((await stage.get(f"{TEAM}/pytorchjobs/x/queue")).body)["causes"]
    assert (cause["code"], cause["field"]) == ("SuspendedByUser", "spec.runPolicy.suspend")
    assert cause["do"] == (
        """kubectl patch pytorchjob x -n team --type=merge -p '{"spec":{"runPolicy":{"suspend":false}}}'"""
    )


async def test_kinds_are_discovered_and_others_are_not_served(tmp_path: Path) -> None:
    async with HubStage(tmp_path, kinds=(TRAIN_JOB, PYTORCH)) as stage:
        resources = {one["name"]: one for one in json.loads((await stage.get(ROOT)).body)["resources"]}
        assert resources["pytorchjobs/log"]["kind"] == "PyTorchJobLog"
        assert resources["pytorchjobs"]["singularName"] == "pytorchjob"
        assert "mpijobs" not in resources
        assert (await stage.get(f"{TEAM}/mpijobs")).status == 404
        assert (await stage.get(f"{TEAM}/pytorchjobs/x/status")).status == 404
        missing = await stage.get(f"{TEAM}/pytorchjobs/x")
        assert (missing.status, json.loads(missing.body)["message"]) == (
            404,
            "there is no PyTorchJob 'x' in namespace 'team' of the hub",
        )


# -- attacks ----------------------------------------------------------------------------------------------------------


async def test_a_pod_that_nobody_made_adds_nothing_to_a_job(stage: HubStage) -> None:
    _run(stage, PYTORCH, 3)
    path = f"{TEAM}/pytorchjobs/x/log?rank=all"
    await stage.until_log(3, path)
    forged = put_pod(stage.worker, "forged", labels_of(PYTORCH, "master", 1), None)
    stage.print(forged, 50)
    await stage.until(lambda: stage.collector.refused)
    assert len(await stage.until_log(3, path)) == 3


async def test_a_job_of_another_kind_on_the_worker_owns_no_pods_of_ours(stage: HubStage) -> None:
    """A tenant of the worker makes an MPIJob of the PyTorchJob's name, with pods that say they are the PyTorchJob's."""
    uid = _run(stage, PYTORCH, 3)
    path = f"{TEAM}/pytorchjobs/x/log?rank=all"
    await stage.until_log(3, path)
    owner = put_copy(stage.worker, MPI, uid)
    stage.print(put_pod(stage.worker, "forged", labels_of(PYTORCH, "master", 1), owner), 50)
    await stage.until(lambda: stage.collector.refused)
    assert len(await stage.until_log(3, path)) == 3


async def test_a_job_of_the_same_name_that_the_worker_made_itself_is_not_the_hubs(stage: HubStage) -> None:
    uid = _run(stage, PYTORCH, 3)
    path = f"{TEAM}/pytorchjobs/x/log?rank=all"
    await stage.until_log(3, path)
    stage.worker.put(PYTORCH.resource, {"metadata": {"name": "x", "namespace": "team", "uid": "own"}})
    own = reference(PYTORCH.resource, "x", "own")
    stage.print(put_pod(stage.worker, "own", labels_of(PYTORCH, "master", 1), own), 50)
    stage.hub.put(WORKLOADS, {"metadata": {"name": "other", "namespace": "team", "uid": "other"}})
    last = put_pod(stage.worker, "last", labels_of(PYTORCH, "worker", 0), put_copy(stage.worker, PYTORCH, uid))
    stage.print(last, 2, 10)
    await stage.until_log(2, f"{TEAM}/pytorchjobs/x/log?step=worker")
    assert len(await stage.until_log(3, path)) == 3


@pytest.mark.parametrize("index", ["-1", "1e3", "٣", "9" * 40, "a"])
async def test_an_index_that_is_no_number_is_refused(stage: HubStage, index: str) -> None:
    uid = put_job(stage, PYTORCH)
    labels = labels_of(PYTORCH, "master") | {"training.kubeflow.org/replica-index": index}
    put_pod(stage.worker, "x-master-0", labels, put_copy(stage.worker, PYTORCH, uid))
    await stage.until(lambda: stage.collector.refused)
    assert stage.archive.job(uid) is None


async def test_a_train_jobs_pod_that_names_an_operator_is_nobodys(stage: HubStage) -> None:
    stage.put_job()
    put_pod(
        stage.worker,
        "x-node-0-0",
        labels_of(PYTORCH, "node") | {names.LABEL_JOBSET_NAME: "x"},
        stage.put_owners(stage.worker, "job-1", "x"),
        container="node",
    )
    stage.print(stage.put_pod("x-node-0-1-abcde", index=1), 2)
    await stage.until_log(2, "x/log?rank=1")
    kept = stage.archive.job("job-1")
    assert kept is not None
    assert [pod.name for pod in kept.pods.values()] == ["x-node-0-1-abcde"]
