"""What pods add to a TrainJob's status: its phase, how many are ready, what went wrong first."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from tests.unit.operator.objects import BROKEN, COMPLETED, counts, train_job
from tests.unit.operator.world import World, started
from trainplane.kube.controller import RequeueAfter
from trainplane.kube.errors import ApiError, ForbiddenError, NotFoundError, UnavailableError
from trainplane.operator.evidence import LAST_LINES_SECONDS, LINES, PER_ATTEMPT
from trainplane.operator.status import UNHURRIED_SECONDS
from trainplane.operator.trainjob import EARLY_SECONDS
from trainplane.operator.witness import LATE_SECONDS
from trainplane.resources import JOB_SETS, PODS, TRAIN_JOBS

TRACEBACK = """epoch 1
Traceback (most recent call last):
  File "/train.py", line 3, in <module>
    main()
KeyError: 'lr'
"""


def failed(world: World, **changes: Any) -> None:
    jobset = world.job_set()
    assert jobset is not None
    restarts = changes.pop("restarts", 0)
    now = {**BROKEN, "lastTransitionTime": world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"), **changes}
    status = {"replicatedJobsStatus": [counts(failed=1)], "conditions": [now], "restarts": restarts}
    world.put(JOB_SETS, {**jobset, "status": status})


def status(world: World) -> dict[str, Any]:
    found: dict[str, Any] = world.train_job().get("status") or {}
    return found


def message(world: World) -> str:
    return str(status(world)["conditions"][0]["message"])


async def test_the_failure_says_what_went_wrong_first() -> None:
    world = await started()
    name = world.pod_says(1, phase="Failed", exit_code=1)
    world.client.printed[name] = TRACEBACK
    failed(world)
    await world.settle()
    shown = status(world)
    assert (shown["phase"], shown["reason"]) == ("Failed", shown["firstFault"]["cause"])
    assert shown["firstFault"]["pod"] == name
    assert (shown["firstFault"]["index"], shown["firstFault"]["node"], shown["firstFault"]["exitCode"]) == (
        1,
        "machine-1",
        1,
    )
    assert shown["firstFault"]["log"][-1] == "KeyError: 'lr'"
    assert "KeyError: 'lr'" in message(world)
    assert message(world).endswith("(JobSet: jobset failed due to one or more job failures)")
    assert shown["conditions"][0]["reason"] == "FailedJobs"
    told = {(note.regarding.kind, note.regarding.name): note.message for note in world.recorder._notes.values()}
    assert "KeyError: 'lr'" in told["Pod", name]


async def test_one_write_says_all() -> None:
    world = await started()
    world.client.printed[world.pod_says(0, phase="Failed", exit_code=1)] = TRACEBACK
    failed(world)
    await world.settle()
    assert world.take_writes() == ["patch trainjobs/status job"]


async def test_a_fault_is_kept_when_its_pod_is_gone() -> None:
    world = await started()
    name = world.pod_says(0, exit_code=1, runs_again=True)
    world.client.printed[name] = TRACEBACK
    await world.settle()
    assert status(world)["phase"] == "Restarting"
    world.delete(PODS, name)
    again = world.restart()
    failed(again)
    await again.settle()
    assert "KeyError: 'lr'" in message(again)


async def test_the_log_of_a_run_before_is_asked_for_as_such() -> None:
    world = await started()
    world.client.printed[world.pod_says(0, exit_code=1, runs_again=True)] = TRACEBACK
    await world.settle()
    (asked,) = [one.body for one in world.client.asked if one.subresource == "log"]
    assert asked == {"container": "node", "previous": True, "tail_lines": LINES}


async def test_a_jobset_that_failed_waits_for_its_pods_and_not_for_long() -> None:
    world = await started()
    failed(world)
    world.sync()
    assert await world.reconcile() == RequeueAfter(EARLY_SECONDS)
    assert "conditions" not in status(world)
    await world.clock.advance(LATE_SECONDS)
    await world.settle()
    assert message(world) == "jobset failed due to one or more job failures"
    assert status(world)["phase"] == "Failed"


async def test_last_lines_that_come_after_the_end_was_told_still_explain_it() -> None:
    """Found in CI: containerd had not written standard error when the kubelet told of the end."""
    world = await started()
    name = world.pod_says(1, phase="Failed", exit_code=1)
    world.client.printed[name] = "epoch 1\n"
    failed(world)
    world.sync()
    assert await world.reconcile() == RequeueAfter(EARLY_SECONDS)
    world.client.printed[name] = TRACEBACK
    await world.settle()
    assert "KeyError: 'lr'" in message(world)


async def test_a_log_that_explains_nothing_is_not_waited_for_long() -> None:
    world = await started()
    world.client.printed[world.pod_says(1, phase="Failed", exit_code=1)] = "epoch 1\n"
    failed(world)
    world.sync()
    assert await world.reconcile() == RequeueAfter(EARLY_SECONDS)
    await world.clock.advance(LAST_LINES_SECONDS)
    await world.settle()
    assert status(world)["phase"] == "Failed"
    assert status(world)["firstFault"]["log"] == ["epoch 1"]


async def test_a_log_that_could_not_be_read_is_read_again() -> None:
    """A kubelet that is busy answers late, or the API server in its place."""
    world = await started()
    world.client.printed[world.pod_says(1, phase="Failed", exit_code=1)] = TRACEBACK
    world.client.refuse["get pods"] = deque([UnavailableError("the kubelet does not answer")])
    failed(world)
    world.sync()
    assert await world.reconcile() == RequeueAfter(EARLY_SECONDS)
    await world.settle()
    assert "KeyError: 'lr'" in message(world)


@pytest.mark.parametrize("final", [ForbiddenError, NotFoundError])
async def test_a_log_that_nobody_will_ever_read_is_not_waited_for(final: type[ApiError]) -> None:
    world = await started()
    world.pod_says(1, phase="Failed", exit_code=1)
    world.client.refuse["get pods"] = deque([final("no")])
    failed(world)
    world.sync()
    await world.reconcile()
    assert status(world)["phase"] == "Failed"


async def test_a_jobset_that_goes_by_itself_is_not_waited_for() -> None:
    world = await started()
    jobset = world.job_set()
    assert jobset is not None
    world.put(JOB_SETS, {**jobset, "spec": {**jobset["spec"], "ttlSecondsAfterFinished": 0}})
    failed(world)
    await world.settle()
    assert status(world)["phase"] == "Failed"


async def test_without_the_right_to_read_logs_the_exit_code_still_tells() -> None:
    world = await started()
    world.pod_says(0, phase="Failed", exit_code=137, reason="OOMKilled")
    failed(world)
    await world.settle()
    assert status(world)["firstFault"]["reason"] == "OOMKilled"


async def test_pod_deleted_by_a_user_counts_by_its_deletion_and_not_by_its_exit_code() -> None:
    world = await started()
    going = {"deletionTimestamp": "2026-01-01T00:04:30Z", "deletionGracePeriodSeconds": 30}
    name = world.pod_says(0, phase="Failed", exit_code=137, meta=going, ended="2026-01-01T00:04:01Z")
    await world.settle()
    kept = status(world)["firstFault"]
    assert (kept["cause"], kept["pod"], kept.get("exitCode")) == ("PodDeleted", name, None)


async def test_pod_lost_with_its_node_is_the_first_fault_though_its_kubelet_reports_no_end() -> None:
    """Found by taking a node away: the Job gives the pod up, and nothing was kept of it."""
    world = await started()
    going = {"deletionTimestamp": "2026-01-01T00:04:30Z", "deletionGracePeriodSeconds": 30}
    target = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager", "message": "a taint"}
    name = world.pod_says(0, meta=going, conditions=[target])
    await world.settle()
    kept = status(world)["firstFault"]
    assert (kept["cause"], kept["pod"], kept["node"]) == ("NodeLost", name, "machine-1")


async def test_a_pod_that_had_failed_before_it_was_told_to_stop_is_one() -> None:
    world = await started()
    going = {"deletionTimestamp": "2026-01-01T00:04:30Z", "deletionGracePeriodSeconds": 30}
    world.pod_says(0, phase="Failed", exit_code=1, meta=going, ended="2026-01-01T00:03:59Z")
    await world.settle()
    assert status(world)["firstFault"]["exitCode"] == 1


async def test_pods_of_a_suspended_job_are_no_fault_and_the_former_one_is_forgotten() -> None:
    world = await started()
    world.pod_says(0, exit_code=1, runs_again=True)
    await world.settle()
    assert "firstFault" in status(world)
    world.edit(suspend=True)
    await world.settle()
    assert "firstFault" not in status(world)
    assert status(world)["phase"] == "Suspended"


async def test_a_pod_that_only_says_it_is_ours_tells_nothing() -> None:
    world = await started()
    name = world.pod_says(0, phase="Failed", exit_code=1, uid="uid-of-another")
    world.client.printed[name] = TRACEBACK
    await world.settle()
    assert "firstFault" not in status(world)
    assert not [one for one in world.client.asked if one.subresource == "log"]


async def test_a_new_attempt_has_its_own_fault() -> None:
    world = await started()
    world.client.printed[world.pod_says(0, phase="Failed", exit_code=1)] = TRACEBACK
    await world.settle()
    assert "restart" not in status(world)["firstFault"]
    world.pod_says(0, attempt=1, phase="Failed", exit_code=137, reason="OOMKilled")
    failed(world, restarts=1)
    await world.settle()
    fault = status(world)["firstFault"]
    assert (fault["restart"], fault["reason"]) == (1, "OOMKilled")
    assert "KeyError" not in message(world)


async def test_a_fault_of_a_former_attempt_is_not_the_cause_of_the_last() -> None:
    world = await started()
    world.client.printed[world.pod_says(0, phase="Failed", exit_code=1)] = TRACEBACK
    await world.settle()
    failed(world, restarts=1)
    await world.settle()
    await world.clock.advance(LATE_SECONDS)
    await world.settle()
    assert message(world) == "jobset failed due to one or more job failures"


async def test_logs_of_few_pods_are_read() -> None:
    world = await started(trainer={"numNodes": 40})
    for index in range(40):
        world.client.printed[world.pod_says(index, phase="Failed", exit_code=1)] = TRACEBACK
    failed(world)
    await world.settle()
    assert len([one for one in world.client.asked if one.subresource == "log"]) == PER_ATTEMPT


async def test_a_crash_loop_is_read_a_few_times_and_shown_as_restarting() -> None:
    world = await started()
    for turn in range(20):
        name = world.pod_says(0, exit_code=1, runs_again=True, ready=False, ended=f"2026-01-01T00:{turn:02}:30Z")
        world.client.printed[name] = TRACEBACK
        await world.settle()
    assert len([one for one in world.client.asked if one.subresource == "log"]) == PER_ATTEMPT
    assert (status(world)["phase"], status(world)["reason"]) == ("Restarting", "CrashLoopBackOff")


async def test_pods_that_are_ready_again_after_a_fault_have_restarted() -> None:
    world = await started()
    world.jobset_says(counts(ready=1))
    await world.settle()
    world.pod_says(0, exit_code=1, runs_again=True)
    world.jobset_says(counts(active=1))
    await world.settle()
    world.jobset_says(counts(ready=1))
    await world.settle()
    assert [one for one in world.news() if one in {"Started", "Restarted"}] == ["Started", "Restarted"]


async def test_what_nobody_waits_for_goes_with_the_next_write_or_later() -> None:
    world = await started()
    world.pod_says(0)
    world.sync()
    assert await world.reconcile() == RequeueAfter(UNHURRIED_SECONDS)
    assert world.client.asked == []
    world.pod_says(1)
    world.jobset_says(counts(ready=1))
    await world.settle()
    assert world.take_writes() == ["patch trainjobs/status job"]
    assert (status(world)["phase"], status(world)["nodesReady"]) == ("Running", "2/2")
    world.pod_says(1, ready=False)
    world.sync()
    assert await world.reconcile() == RequeueAfter(UNHURRIED_SECONDS)
    await world.clock.advance(UNHURRIED_SECONDS)
    await world.settle()
    assert status(world)["nodesReady"] == "1/2"


async def test_a_pod_without_a_machine_is_why_it_is_pending() -> None:
    world = await started()
    world.pod_says(0, phase="Pending", node="")
    world.jobset_says(counts(active=1))
    await world.settle()
    assert (status(world)["phase"], status(world)["reason"], status(world)["nodesReady"]) == (
        "Pending",
        "Unschedulable",
        "0/2",
    )


async def test_it_is_told_once_that_every_pod_has_a_machine() -> None:
    world = await started()
    world.pod_says(0)
    world.pod_says(1, phase="Pending", node="")
    await world.settle()
    assert "Scheduled" not in world.news()
    for _ in range(2):
        world.pod_says(1)
        await world.settle()
    assert world.news().count("Scheduled") == 1
    assert "all 2 pods have a machine" in world.messages()


async def test_pods_that_are_done_before_their_jobset_says_so_are_no_restart() -> None:
    world = await started()
    world.pod_says(0, exit_code=1, runs_again=True, ready=False)
    world.jobset_says(counts(active=1))
    await world.settle()
    assert status(world)["phase"] == "Restarting"
    for index in range(2):
        world.pod_says(index, phase="Succeeded", ready=False)
    await world.settle()
    await world.clock.advance(UNHURRIED_SECONDS)
    await world.settle()
    assert status(world)["phase"] == "Running"


async def test_a_job_that_is_held_back_has_no_pods_to_count() -> None:
    world = await started()
    world.pod_says(0)
    world.jobset_says(counts(active=1))
    await world.settle()
    assert status(world)["nodesReady"] == "1/2"
    world.edit(suspend=True)
    await world.settle()
    assert "nodesReady" not in status(world)


async def test_success_is_one_word() -> None:
    world = await started()
    for index in range(2):
        world.pod_says(index)
    world.jobset_says(counts(ready=1))
    await world.settle()
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    await world.settle()
    assert (status(world)["phase"], status(world)["nodesReady"]) == ("Succeeded", "2/2")


@pytest.mark.parametrize(
    ("jobs", "phase"), [((), "Queued"), ((counts(active=1),), "Pending"), ((counts(ready=1),), "Running")]
)
async def test_of_a_dispatched_trainjob_only_the_phase_is_written(jobs: tuple[Any, ...], phase: str) -> None:
    world = World().with_runtime()
    meta = {"labels": {"kueue.x-k8s.io/queue-name": "team"}}
    job = train_job(managedBy="kueue.x-k8s.io/multikueue", suspend=True, meta=meta)
    world.put(TRAIN_JOBS, {**job, "status": {"jobsStatus": list(jobs)}} if jobs else job)
    await world.settle()
    (write,) = [one for one in world.client.asked if one.verb != "get"]
    assert set(write.body["status"]) <= {"phase", "reason"}
    assert status(world)["phase"] == phase
    assert world.job_set() is None


async def test_a_crd_that_knows_no_phase_is_not_told_again_and_again() -> None:
    world = await started()
    world.jobset_says(counts(ready=1))
    world.reconciler._prunes = True
    await world.settle()
    bare = world.train_job()
    for name in ("phase", "nodesReady", "runtimeDigest"):
        bare["status"].pop(name, None)
    world.put(TRAIN_JOBS, bare)
    world.reconciler._prunes = True
    world.take_writes()
    await world.clock.advance(60)
    await world.settle()
    assert world.take_writes() == []
