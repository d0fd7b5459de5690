from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.client.reading.documents import at, condition, ended, event, pod, train_job, waiting
from trainplane.client.reading.causes import find_cause

if TYPE_CHECKING:
    from trainplane.client.types.jobs import Cause

FAILED = condition("Failed", "FailedJobs", "jobset failed due to one or more job failures")


def cause(*pods: Any, conditions: Any = (FAILED,), events: Any = (), view: Any = None, **job: Any) -> Cause | None:
    return find_cause(train_job(conditions=conditions, **job), pods, events, view=view)


def found(*pods: Any, **others: Any) -> Cause:
    one = cause(*pods, **others)
    assert one is not None
    return one


def test_what_runs_or_is_complete_has_none() -> None:
    assert cause(pod(), conditions=()) is None
    assert cause(pod(0, "Failed", state=ended(1)), conditions=[condition("Complete")]) is None


def test_the_first_container_that_failed() -> None:
    one = found(pod(0, "Failed", state=ended(1, second=31)), pod(1, "Failed", state=ended(3, second=30)))
    assert (one.step, one.exit_code, one.reason) == ("node-1", 3, "Error")


@pytest.mark.parametrize("code", [137, 143])
def test_who_was_told_to_stop_in_the_same_second_is_no_cause(code: int) -> None:
    one = found(pod(0, "Failed", state=ended(code)), pod(1, "Failed", state=ended(1)))
    assert (one.step, one.exit_code) == ("node-1", 1)


def test_out_of_memory_is_one_though_its_code_is_that_of_a_kill() -> None:
    killed = pod(1, "Failed", state=ended(137, reason="OOMKilled"), limits={"memory": "64Mi"})
    assert found(pod(0, "Failed", state=ended(143)), killed).step == "node-1"
    one = found(pod(0, "Failed", state=ended(1)), killed)
    assert (one.reason, one.step, one.exit_code) == ("OOMKilled", "node-1", 137)
    assert "64Mi" in one.message
    assert "resourcesPerNode" in one.message


def test_what_was_got_over_by_a_restart_of_all_is_no_cause() -> None:
    attempt = "jobset.sigs.k8s.io/restart-attempt"
    old = pod(0, "Failed", state=ended(7, second=10), labels={attempt: "0"}, suffix="aaaaa")
    new = pod(0, "Failed", state=ended(3, second=40), labels={attempt: "1"}, suffix="bbbbb", made=at(20))
    assert found(old, new).exit_code == 3


def test_a_pod_that_was_replaced_by_its_job_counts() -> None:
    old = pod(0, "Failed", state=ended(7, second=10), suffix="aaaaa")
    new = pod(0, "Failed", state=ended(3, second=40), suffix="bbbbb", made=at(20))
    assert found(old, new).exit_code == 7


def test_the_run_before_counts_where_the_present_one_has_not_failed() -> None:
    one = found(pod(0, state=waiting("CrashLoopBackOff", "back-off"), last=ended(3), phase="Running"))
    assert (one.exit_code, one.step) == (3, "node-0")


def test_an_initializer_that_failed_is_the_step() -> None:
    assert found(pod(role="dataset-initializer", phase="Failed", state=ended(1))).step == "dataset-initializer"


@pytest.mark.parametrize(("code", "word"), [(127, "command was not found"), (139, "native"), (135, "shared memory")])
def test_codes_that_mean_something_are_explained(code: int, word: str) -> None:
    assert word in found(pod(0, "Failed", state=ended(code))).message


def test_the_containers_own_message_is_told() -> None:
    one = found(pod(0, "Failed", state=ended(1, message="the disk is tired\n")))
    assert one.message.startswith("the disk is tired. ")


def test_an_evicted_pod_has_no_container_that_failed() -> None:
    status = {"reason": "Evicted", "message": "The node was low on resource: memory"}
    one = found(pod(0, "Failed", status=status))
    assert (one.reason, one.step) == ("Evicted", "node-0")
    assert one.message.startswith("The node was low on resource: memory. ")


def test_a_preempted_pod() -> None:
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "preempted"}
    one = found(pod(0, "Failed", status={"conditions": [target]}))
    assert (one.reason, one.kind, one.message[:10]) == ("PreemptionByScheduler", "Preempted", "preempted.")


def test_deadline_is_the_cause_and_not_the_kill_that_follows() -> None:
    late = condition("Failed", "DeadlineExceeded", "it ran past spec.activeDeadlineSeconds, 12 s")
    one = found(pod(0, "Failed", state=ended(143)), conditions=[late])
    assert (one.reason, one.step) == ("DeadlineExceeded", None)
    assert "12 s. Raise activeDeadlineSeconds" in one.message


def test_what_held_a_job_up_to_its_deadline_is_told() -> None:
    late = condition("Failed", "DeadlineExceeded", "too late")
    pulling = event("Pod", "a-node-0-0-abcde", "Failed", 'Failed to pull image "x"', type="Warning")
    one = found(conditions=[late], events=[pulling])
    assert one.reason == "DeadlineExceeded"
    assert 'Failed to pull image "x"' in one.message


def test_without_pods_events_tell_and_else_the_condition() -> None:
    assert (found().reason, found().kind) == ("FailedJobs", "Unknown")
    assert found().message.startswith(FAILED["message"])
    refused = event("Job", "a-node-0", "FailedCreate", "exceeded quota", type="Warning")
    own = event("TrainJob", "a", "Failed", "FailedJobs: jobset failed", type="Warning")
    one = found(events=[own, refused])
    assert (one.reason, one.kind) == ("FailedCreate", "QuotaExceeded")
    assert one.message.startswith("Job a-node-0: exceeded quota. ")


def test_a_runtime_that_cannot_be_used() -> None:
    bad = condition("Failed", "TrainingRuntimeNotSupported", "no such kind")
    one = found(pod(0, "Failed", state=ended(1)), conditions=[bad])
    assert (one.reason, one.kind, one.step) == ("TrainingRuntimeNotSupported", "RuntimeMissing", None)
    assert one.message.startswith("no such kind. ")


@pytest.mark.parametrize("reason", ["ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError"])
def test_what_a_pod_waits_for(reason: str) -> None:
    one = found(pod(0), pod(1, "Pending", state=waiting(reason, "the kubelet's words")), conditions=())
    assert (one.reason, one.step) == (reason, "node-1")
    assert one.message.startswith("the kubelet's words. ")


def test_no_room() -> None:
    no_room = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    one = found(pod(0, "Pending", status={"conditions": [no_room]}), conditions=())
    assert (one.reason, one.step) == ("Unschedulable", "node-0")
    assert one.message.startswith("0/3 nodes")


def test_a_pod_that_failed_and_is_not_yet_replaced() -> None:
    assert found(pod(0), pod(1, "Failed", state=ended(3)), conditions=()).exit_code == 3


def test_a_container_that_runs_again_is_well() -> None:
    assert cause(pod(0, last=ended(3), restarts=1), conditions=()) is None


def test_objects_that_could_not_be_made() -> None:
    told = event("TrainJob", "a", "TrainJobResourcesCreationFailed", "name taken", type="Warning")
    assert found(conditions=(), events=[told]).message.startswith("TrainJob a: name taken. ")


def test_held_by_its_user() -> None:
    one = found(conditions=(), spec={"suspend": True})
    assert (one.reason, "Resume it" in one.message) == ("Suspended", True)


def test_held_by_its_queue() -> None:
    labels = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "gold"}}}
    one = found(conditions=(), spec={"suspend": True}, **labels)
    assert (one.reason, "gold" in one.message) == ("Queued", True)
    view = {"status": {"placement": "Waiting", "reason": "no quota is reserved for it"}}
    one = found(conditions=(), spec={"managedBy": "kueue.x-k8s.io/multikueue"}, view=view, **labels)
    assert (one.reason, one.step) == ("Queued", None)
    assert one.message.startswith("no quota is reserved for it. ")


def test_a_message_that_ends_with_a_stop_is_followed_by_advice_as_a_sentence_is() -> None:
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "preemption: 0/1 nodes."}
    waits = pod(0, "Pending")
    waits["status"]["conditions"] = [told]
    cause = find_cause(train_job(), [waits])
    assert cause is not None
    assert cause.message.startswith("preemption: 0/1 nodes. Ask for less, ")
