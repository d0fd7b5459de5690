"""A cluster at a glance, from its objects."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.reading.documents import CREATED, at, condition, train_job
from trainplane.client.reading.overview import (
    MOST_CONCERNS,
    count_jobs,
    read_concerns,
    read_devices_of,
    read_phase,
    read_queue,
    read_worker,
)
from trainplane.client.types.overview import DeviceUse, QuotaUse

Tree = dict[str, Any]
QUEUE = {"labels": {"kueue.x-k8s.io/queue-name": "team-a"}}
DISPATCHED = {"managedBy": "kueue.x-k8s.io/multikueue"}


@pytest.mark.parametrize(
    ("job", "phase"),
    [
        (train_job(conditions=[condition("Complete")], status={"phase": "Running"}), "Succeeded"),
        (train_job(conditions=[condition("Failed")]), "Failed"),
        (train_job(status={"phase": "Restarting"}), "Restarting"),
        (train_job(spec={"suspend": True}), "Suspended"),
        (train_job(spec={"suspend": True}, metadata=QUEUE), "Queued"),
        (train_job(status={"phase": "\x1b[2J"}), "Pending"),
        (train_job(spec=DISPATCHED, jobs=[{"name": "node", "ready": 1, "active": 1}]), "Running"),
        (train_job(spec=DISPATCHED, metadata=QUEUE), "Queued"),
        ({"metadata": None, "spec": 3, "status": []}, "Pending"),
    ],
)
def test_the_phase_is_the_operators_else_what_conditions_and_counts_tell(job: Tree, phase: str) -> None:
    assert read_phase(job) == phase


def a_queue(**status: Any) -> Tree:
    gpu = [{"name": "nvidia.com/gpu", "nominalQuota": 8}, {"name": "memory", "nominalQuota": "2Gi"}, {"name": "odd"}]
    return {
        "metadata": {"name": "team"},
        "spec": {"cohortName": "all", "resourceGroups": [{"flavors": [{"name": "a100", "resources": gpu}]}]},
        "status": {
            "conditions": [condition("Active")],
            "pendingWorkloads": 3,
            "admittedWorkloads": 2,
            "flavorsReservation": [
                {"name": "a100", "resources": [{"name": "nvidia.com/gpu", "total": "5"}, {"name": "memory"}]}
            ],
            **status,
        },
    }


def test_a_queue_has_its_quota_and_what_is_reserved_of_it() -> None:
    queue = read_queue(a_queue())
    assert (queue.name, queue.pending, queue.admitted, queue.is_active, queue.cohort) == ("team", 3, 2, True, "all")
    assert queue.quotas == (
        QuotaUse("a100", "nvidia.com/gpu", 8, 5),
        QuotaUse("a100", "memory", 2**31, 0),
        QuotaUse("a100", "odd", 0, 0),
    )
    assert [quota.free for quota in queue.quotas] == [3, 2**31, 0]


def test_a_queue_that_lets_nobody_go_says_why() -> None:
    broken = a_queue(conditions=[condition("Active", message="flavor a100 is missing", status="False")])
    assert read_queue(broken).why == "flavor a100 is missing"
    held = a_queue()
    held["spec"]["stopPolicy"] = "Hold"
    assert not read_queue(held).is_active
    assert not read_queue({"status": {"pendingWorkloads": "many"}}).is_active


def test_a_worker_is_connected_or_says_why_not() -> None:
    active = {"metadata": {"name": "east"}, "status": {"conditions": [condition("Active")]}}
    assert read_worker(active, 3).is_connected
    lost = {"metadata": {"name": "west"}, "status": {"conditions": [condition("Active", message="no", status="False")]}}
    assert (read_worker(lost, None).is_connected, read_worker(lost, None).why) == (False, "no")
    assert read_worker({"metadata": {"name": "new"}}, None).why == "Kueue has not tried yet"


def test_jobs_of_workers_are_those_that_are_there_now() -> None:
    views = [
        {"status": {"cluster": "east", "placement": "Dispatched"}},
        {"status": {"cluster": "east", "placement": "Finished"}},
        {"status": {"placement": "Waiting"}},
    ]
    assert count_jobs(views) == {"east": 1}


def a_node(name: str, gpus: object = "8", *, ready: bool = True, **spec: Any) -> Tree:
    allocatable = {"nvidia.com/gpu": gpus, "cpu": "64", "nvidia.com/gpumem": "900"}
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {
        "metadata": {"name": name},
        "spec": spec,
        "status": {"allocatable": allocatable, "conditions": conditions},
    }


def a_pod(node: str | None, gpus: object) -> Tree:
    return {"spec": {"nodeName": node, "containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus, "cpu": "1"}}}]}}


def test_devices_are_used_idle_waited_for_or_away() -> None:
    nodes = [a_node("a"), a_node("b"), a_node("c", ready=False), a_node("d", unschedulable=True), a_node("e", "junk")]
    pods = [a_pod("a", "4"), a_pod("b", 2), a_pod("c", "8"), a_pod(None, "16"), a_pod("a", "junk"), {}]
    (found,) = read_devices_of(nodes, pods)
    assert found == DeviceUse("nvidia.com/gpu", 16, 6, 16, 16)
    assert found.idle == 10


def test_concerns_are_failures_newest_first_then_what_does_not_run_oldest_first() -> None:
    fault = {"firstFault": {"reason": "OOMKilled"}}
    older = train_job("old", conditions=[{**condition("Failed"), "lastTransitionTime": at(1)}], status=fault)
    newer = train_job("new", conditions=[{**condition("Failed"), "lastTransitionTime": at(9)}])
    late = train_job("late", metadata={**QUEUE, "creationTimestamp": at(5)})
    told = [(older, "Failed"), (late, "Queued"), (train_job("first"), "Queued"), (newer, "Failed"), (late, "Running")]
    concerns = read_concerns(told)
    assert [one.name for one in concerns] == ["new", "old", "first", "late"]
    assert (concerns[1].reason, concerns[3].queue) == ("OOMKilled", "team-a")
    assert concerns[2].since.isoformat() == CREATED.replace("Z", "+00:00")


def test_concerns_are_bounded() -> None:
    many = [(train_job(f"job-{number}"), "Queued") for number in range(1000)]
    assert len(read_concerns(many)) == MOST_CONCERNS
