from __future__ import annotations

from typing import Any

import pytest

from trainplane.api import names
from trainplane.hub.errors import NoSuchJobError
from trainplane.hub.placement import Placement, find, newest, place
from trainplane.kube.testing.server import FakeServer
from trainplane.resources import TRAIN_JOBS, WORKLOADS

Tree = dict[str, Any]

MULTIKUEUE = "kueue.x-k8s.io/multikueue"


def job(*, managed_by: str | None = MULTIKUEUE, queue: str | None = "team", **conditions: str) -> Tree:
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    made = [{"type": kind, "status": "True", "message": message} for kind, message in conditions.items()]
    return {
        "metadata": {"name": "tune", "namespace": "research", "uid": "u-1", "labels": labels},
        "spec": {"managedBy": managed_by} if managed_by else {},
        "status": {"conditions": made} if made else {},
    }


def workload(
    *, reserved: bool = True, active: bool | None = None, checks: list[Tree] | None = None, **status: Any
) -> Tree:
    condition = {"type": "QuotaReserved", "status": "True" if reserved else "False"}
    if not reserved:
        condition["message"] = "couldn't assign flavors to pod set node: insufficient quota for cpu"
    conditions = [condition, *status.pop("conditions", [])]
    spec: Tree = {"queueName": "team"}
    if active is not None:
        spec["active"] = active
    return {
        "metadata": {"name": "trainjob-tune-1a2b3", "namespace": "research"},
        "spec": spec,
        "status": {"conditions": conditions, "admissionChecks": checks or [], **status},
    }


@pytest.mark.parametrize("managed_by", [None, "trainer.kubeflow.org/trainjob-controller"])
def test_a_job_that_multikueue_does_not_manage_is_local(managed_by: str | None) -> None:
    placed = place(job(managed_by=managed_by), None)
    assert placed.state == "Local"
    assert placed.cluster is None
    assert "trainer.kubeflow.org/trainjob-controller" in placed.reason


def test_a_local_job_is_local_to_its_end() -> None:
    assert place(job(managed_by=None, Complete="done"), workload()).state == "Local"


def test_a_dispatched_job_is_where_its_workload_says() -> None:
    placed = place(job(), workload(clusterName="worker2"))
    assert placed == Placement(
        namespace="research",
        name="tune",
        uid="u-1",
        cluster="worker2",
        nominated=(),
        workload="trainjob-tune-1a2b3",
        state="Dispatched",
        reason="admitted on worker2",
    )


def test_the_admission_check_names_the_worker_where_the_status_does_not() -> None:
    check = {"name": "mk", "state": "Ready", "message": 'The workload was admitted on "worker1"'}
    assert place(job(), workload(checks=[check])).cluster == "worker1"
    again = check | {"state": "Retry"}
    assert place(job(), workload(checks=[again])).state == "Waiting"


def test_where_a_job_ended_whose_workload_was_evicted_meanwhile() -> None:
    placed = place(job(Failed="jobset says so"), workload(reserved=False), "worker2")
    assert (placed.state, placed.cluster, placed.reason) == ("Finished", "worker2", "Failed on worker2: jobset says so")
    assert place(job(), workload(reserved=False), "worker2").cluster is None, "it waits, and is on none"


@pytest.mark.parametrize("kind", ["Complete", "Failed"])
def test_a_finished_job_says_where_it_was_and_how_it_ended(kind: str) -> None:
    placed = place(job(**{kind: "jobset says so"}), workload(clusterName="worker2"))
    assert placed.state == "Finished"
    assert placed.cluster == "worker2"
    assert placed.reason == f"{kind} on worker2: jobset says so"


def test_a_finished_job_whose_workload_is_gone_is_finished_still() -> None:
    placed = place(job(Complete="done"), None)
    assert (placed.state, placed.cluster, placed.reason) == ("Finished", None, "Complete: done")


def test_a_condition_that_is_false_finishes_nothing() -> None:
    unfinished = job(Complete="no")
    unfinished["status"]["conditions"][0]["status"] = "False"
    assert place(unfinished, workload(clusterName="worker2")).state == "Dispatched"


def test_a_job_without_workload_waits_and_says_for_what() -> None:
    assert "no Workload for it yet (queue team)" in place(job(), None).reason
    assert "kueue.x-k8s.io/queue-name" in place(job(queue=None), None).reason


def test_a_job_without_quota_passes_on_why() -> None:
    placed = place(job(), workload(reserved=False))
    assert placed.state == "Waiting"
    assert "queue team: couldn't assign flavors" in placed.reason


def test_a_nominated_job_names_who_is_asked_and_what_the_check_says() -> None:
    check = {"name": "mk", "state": "Pending", "message": "The workload has been nominated"}
    placed = place(job(), workload(checks=[check], nominatedClusterNames=["worker1", "worker2"]))
    assert placed.nominated == ("worker1", "worker2")
    assert placed.reason.startswith("worker1, worker2 asked to take it, none has yet; mk is Pending: The workload")


def test_nominations_are_history_once_a_worker_has_it() -> None:
    assert place(job(), workload(clusterName="a", nominatedClusterNames=["a", "b"])).nominated == ()


def test_nobody_is_asked_while_the_hub_has_no_quota_for_it() -> None:
    """Kueue leaves the names where a Workload that is evicted gives its quota back."""
    left = workload(reserved=False, nominatedClusterNames=["worker1", "worker2"])
    assert place(job(), left).nominated == ()


def test_a_deactivated_workload_says_why() -> None:
    evicted = {"type": "Evicted", "status": "True", "message": "At least one admission check is false"}
    placed = place(job(), workload(active=False, conditions=[evicted]))
    assert placed.reason == "its Workload is deactivated: At least one admission check is false"
    assert place(job(), workload(active=False)).reason.endswith("spec.active is false")


def test_the_newest_workload_counts_and_one_on_its_way_out_does_not() -> None:
    old = {"metadata": {"name": "old", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    new = {"metadata": {"name": "new", "creationTimestamp": "2026-01-02T00:00:00Z"}}
    dying = {"metadata": {"name": "dying", "creationTimestamp": "2026-01-03T00:00:00Z", "deletionTimestamp": "x"}}
    assert newest([old, dying, new]) is new
    assert newest([dying]) is dying
    assert newest([]) is None


async def test_find_reads_the_job_and_its_own_workload() -> None:
    async with FakeServer() as server, server.client() as hub:
        stored = server.put(TRAIN_JOBS, job())
        mine = workload(clusterName="worker1")
        mine["metadata"]["labels"] = {names.LABEL_JOB_UID: stored["metadata"]["uid"]}
        other = workload(clusterName="worker9")
        other["metadata"] |= {"name": "other", "labels": {names.LABEL_JOB_UID: "another"}}
        server.put(WORKLOADS, mine)
        server.put(WORKLOADS, other)
        assert (await find(hub, "research", "tune")).cluster == "worker1"


async def test_find_of_nothing_names_what_is_missing() -> None:
    async with FakeServer() as server, server.client() as hub:
        with pytest.raises(NoSuchJobError, match="no TrainJob 'tune' in namespace 'research'"):
            await find(hub, "research", "tune")
