"""What follows when an attempt of a TrainJob ends: a restart that counts or not, or the end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.operator.objects import BROKEN, COMPLETED, condition, counts, train_job
from tests.unit.operator.objects import runtime as make_runtime
from tests.unit.operator.world import World
from trainplane.api import names
from trainplane.operator.recreation import recreate
from trainplane.operator.witness import LATE_SECONDS
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, JOB_SETS, PODS, TRAIN_JOBS

Tree = dict[str, Any]

DELETED = {"deletionTimestamp": "2026-01-01T00:04:20Z", "deletionGracePeriodSeconds": 30}
"""Deleted at 00:03:50, ten seconds before pods of these tests end."""
DRAINED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "evicted",
    "lastTransitionTime": "2026-01-01T00:03:50Z",
}
LOST_PEER = """Traceback (most recent call last):
  File "/train.py", line 9, in <module>
    dist.all_reduce(loss)
RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.7]:4711
"""
TYPO = """Traceback (most recent call last):
  File "/train.py", line 3, in <module>
    modle.train()
NameError: name 'modle' is not defined
"""
SHAPES = """Traceback (most recent call last):
  File "/train.py", line 30, in <module>
    loss = model(batch)
RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x9 and 8x1)
"""
NCCL = "NCCL WARN Call to ibv_poll_cq failed\nDistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3356\n"


async def world_with(max_restarts: int = 0, **jobset_spec: Any) -> World:
    """Return a world in which a TrainJob of two pods trains."""
    runtime = make_runtime()
    runtime["spec"]["runPolicy"] = {"failurePolicy": {"maxRestarts": max_restarts}}
    runtime["spec"]["template"]["spec"] |= jobset_spec
    world = World()
    world.put(CLUSTER_TRAINING_RUNTIMES, runtime)
    world.put(TRAIN_JOBS, train_job())
    await world.settle()
    await train(world)
    return world


async def train(world: World, **meta: Any) -> None:
    for index in (0, 1):
        say(world, index, **meta)
    world.jobset_says(counts(ready=1, active=1))
    await world.settle()


def say(world: World, index: int, **changes: Any) -> str:
    """Let a kubelet report of a pod, with the labels that the operator gave the pods."""
    jobset = world.job_set()
    assert jobset is not None
    template = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    labels = template.get("metadata", {}).get("labels", {})
    log = changes.pop("log", "")
    name = world.pod_says(index, **changes)
    pod = world.find(PODS, name)
    assert pod is not None
    world.put(PODS, {**pod, "metadata": {**pod["metadata"], "labels": {**pod["metadata"]["labels"], **labels}}})
    world.client.printed[name] = log
    return name


def status(world: World) -> Tree:
    found: Tree = world.train_job().get("status") or {}
    return found


def failure(world: World) -> str:
    """Return the message of the condition Failed."""
    message: str = next(one["message"] for one in status(world)["conditions"] if one["type"] == "Failed")
    return message


async def end(world: World, how: Tree = BROKEN) -> None:
    """Let the JobSet end, and the operator look at that until it does no more."""
    world.jobset_says(counts(failed=1), conditions=(how,))
    await world.settle()
    await world.clock.advance(LATE_SECONDS)
    await world.settle()


async def restarted(world: World) -> Tree:
    """Return the status after a restart, in which the JobSet was created again with its number."""
    assert not [one for one in world.conditions() if one[0] in {"Failed", "Complete"}], status(world)
    number = status(world).get("restarts", 0)
    assert number
    for index in (0, 1):
        world.delete(PODS, f"job-node-0-{index}-a0")
    await world.settle()
    jobset = world.job_set()
    assert jobset is not None
    (job,) = jobset["spec"]["replicatedJobs"]
    for part in (jobset, job["template"]["spec"]["template"]):
        assert part["metadata"]["labels"][names.LABEL_RESTARTS] == str(number)
    return status(world)


@pytest.mark.parametrize("stop", [{"conditions": [DRAINED]}, {"meta": DELETED}])
async def test_pod_stopped_and_its_peer_failed_restarts_without_counting(stop: Tree) -> None:
    world = await world_with()
    say(world, 0, **stop)
    await world.settle()
    say(world, 1, phase="Failed", exit_code=1, log=LOST_PEER)
    await world.settle()
    await end(world)
    after = await restarted(world)
    assert (after["restarts"], after.get("restartsCountTowardsMax", 0)) == (1, 0)
    assert after["firstFault"]["pod"].startswith("job-node-0-0")


async def test_pod_stopped_seen_together_with_its_failed_peer_restarts_without_counting() -> None:
    world = await world_with()
    say(world, 1, phase="Failed", exit_code=1, log=LOST_PEER)
    say(world, 0, meta=DELETED, phase="Failed", exit_code=143)
    await end(world)
    assert (await restarted(world))["firstFault"]["cause"] == "PodDeleted"


async def test_pod_deleted_after_a_fault_by_the_job_controller_is_no_disruption() -> None:
    world = await world_with()
    say(world, 1, phase="Failed", exit_code=1, log=TYPO)
    await world.settle()
    late = {"deletionTimestamp": "2026-01-01T00:04:31Z", "deletionGracePeriodSeconds": 30}
    say(world, 0, meta=late, phase="Failed", exit_code=143, ended="2026-01-01T00:04:01Z")
    await end(world)
    assert ("Failed", "True", "FailedJobs") in world.conditions()
    assert "NameError" in status(world)["conditions"][0]["message"]


@pytest.mark.parametrize("stop", [{"conditions": [DRAINED]}, {"meta": DELETED}])
async def test_stopped_pod_that_exits_with_0_never_completes_the_job(stop: Tree) -> None:
    world = await world_with()
    for index in (0, 1):
        say(world, index, phase="Succeeded", exit_code=0, **stop)
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    await world.settle()
    after = await restarted(world)
    assert after.get("restartsCountTowardsMax", 0) == 0


@pytest.mark.parametrize("replaced", [False, True])
async def test_stopped_pod_that_is_gone_never_completes_the_job_unless_another_took_its_place(replaced: bool) -> None:
    world = await world_with()
    say(world, 1, conditions=[DRAINED])
    await world.settle()
    assert status(world)["firstFault"]["cause"] == "Drained"
    world.delete(PODS, "job-node-0-1-a0")
    for index in (0, 1) if replaced else (0,):
        say(world, index, phase="Succeeded", exit_code=0)
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    await world.settle()
    if replaced:
        assert world.conditions()[0][:2] == ("Complete", "True")
    else:
        say(world, 1, conditions=[DRAINED])  # for `restarted`, which deletes the pods
        assert (await restarted(world))["restarts"] == 1


async def test_stopped_pod_that_exits_with_0_restarts_before_its_peers_hang() -> None:
    world = await world_with()
    say(world, 1, phase="Succeeded", exit_code=0, meta=DELETED)
    await world.settle()
    assert (await restarted(world))["restarts"] == 1


async def test_pod_drained_after_it_had_finished_completes_the_job() -> None:
    world = await world_with()
    late = DRAINED | {"lastTransitionTime": "2026-01-01T00:04:01Z"}
    for index in (0, 1):
        say(world, index, phase="Succeeded", exit_code=0, conditions=[late])
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    await world.settle()
    assert world.conditions()[0][:2] == ("Complete", "True")


async def test_worker_stopped_by_the_success_policy_does_not_restart_the_job() -> None:
    """JobSet deletes an MPI job's nodes when the launcher, its target, has succeeded."""
    world = await world_with(successPolicy={"operator": "All", "targetReplicatedJobs": ["launcher"]})
    say(world, 1, phase="Succeeded", exit_code=0, meta=DELETED)
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    await world.settle()
    assert world.conditions()[0][:2] == ("Complete", "True")


async def test_pods_deleted_at_a_jobs_deadline_are_no_disruption() -> None:
    world = await world_with()
    jobset = world.job_set()
    assert jobset is not None
    (job,) = jobset["spec"]["replicatedJobs"]
    job["template"]["spec"]["activeDeadlineSeconds"] = 60
    world.put(JOB_SETS, jobset)
    say(world, 0, meta=DELETED, phase="Failed", exit_code=143)
    await end(world)
    assert ("Failed", "True", "FailedJobs") in world.conditions()


async def test_jobset_failed_while_suspended_is_created_again_suspended() -> None:
    world = await world_with()
    world.edit(suspend=True)
    await world.settle()
    say(world, 0, phase="Failed", exit_code=1, log=LOST_PEER)
    await end(world)
    after = await restarted(world)
    jobset = world.job_set()
    assert jobset is not None
    assert jobset["spec"]["suspend"] is True
    assert (after["phase"], after.get("firstFault")) == ("Suspended", None)


async def test_jobset_failed_after_a_resume_by_pods_from_before_restarts() -> None:
    world = await world_with()
    say(world, 0, phase="Failed", exit_code=1, log=LOST_PEER)
    resumed = condition("Suspended", "ResumeJobs", status="False") | {"lastTransitionTime": "2026-01-01T00:04:30Z"}
    world.jobset_says(counts(failed=1), conditions=(resumed, BROKEN))
    await world.settle()
    await world.clock.advance(LATE_SECONDS)
    await world.settle()
    assert (await restarted(world)).get("restartsCountTowardsMax", 0) == 0


@pytest.mark.parametrize("max_restarts", [0, 10])
async def test_certain_error_fails_at_once(max_restarts: int) -> None:
    world = await world_with(max_restarts)
    say(world, 0, phase="Failed", exit_code=1, log=TYPO)
    await end(world)
    assert ("Failed", "True", "FailedJobs") in world.conditions()
    assert failure(world).endswith("Not restarted: the error would come again.") == bool(max_restarts)
    assert world.job_set() is not None  # its pods keep their logs


@pytest.mark.parametrize(("log", "code"), [(NCCL, 134), (LOST_PEER, 1), ("", 3), (SHAPES, 1)])
async def test_fault_without_certainty_restarts_and_counts(log: str, code: int) -> None:
    world = await world_with(10)
    say(world, 0, phase="Failed", exit_code=code, log=log)
    await end(world)
    after = await restarted(world)
    assert (after["restarts"], after["restartsCountTowardsMax"]) == (1, 1)
    assert any("(1 of 10)" in message for message in world.messages())


async def test_fault_without_certainty_fails_where_the_runtime_allows_no_restart() -> None:
    world = await world_with(0)
    say(world, 0, phase="Failed", exit_code=134, log=NCCL)
    await end(world)
    assert ("Failed", "True", "FailedJobs") in world.conditions()


async def fail_again(world: World, log: str, *, created: str = "2026-01-01T00:03:00Z", code: int = 1) -> None:
    """Let both pods of the attempt begin, and one of them fail."""
    await train(world, meta={"creationTimestamp": created})
    say(world, 0, phase="Failed", exit_code=code, log=log, meta={"creationTimestamp": created})
    await end(world)


async def test_same_unhealing_cause_twice_in_a_row_fails() -> None:
    world = await world_with(10)
    await fail_again(world, SHAPES)
    await restarted(world)
    await fail_again(world, SHAPES)
    assert ("Failed", "True", "FailedJobs") in world.conditions()
    assert failure(world).endswith("Not restarted: the attempt before failed by the same cause.")
    assert status(world)["restarts"] == 1


@pytest.mark.parametrize(
    ("log", "code"), [("", 255), (NCCL, 134), ("RuntimeError: CUDA error: an illegal memory access was encountered", 1)]
)
async def test_cause_that_may_be_the_nodes_or_is_unclear_restarts_each_time(log: str, code: int) -> None:
    world = await world_with(10)
    for number in range(1, 4):
        await fail_again(world, log, code=code)
        assert (await restarted(world))["restartsCountTowardsMax"] == number


async def test_same_cause_twice_after_a_long_run_restarts() -> None:
    world = await world_with(10)
    await fail_again(world, SHAPES)
    await restarted(world)
    await fail_again(world, SHAPES, created="2025-12-31T00:00:00Z")
    assert (await restarted(world))["restartsCountTowardsMax"] == 2


async def test_healing_fault_restarts_until_the_limit() -> None:
    world = await world_with(3)
    for number in range(1, 4):
        await fail_again(world, LOST_PEER)
        assert (await restarted(world))["restartsCountTowardsMax"] == number
    await fail_again(world, LOST_PEER)
    assert ("Failed", "True", "FailedJobs") in world.conditions()
    assert failure(world).endswith("Not restarted: 3 of 3 restarts are used.")


async def test_first_fault_of_a_later_attempt_keeps_nothing_of_the_one_before() -> None:
    world = await world_with(10)
    say(world, 1, phase="Failed", exit_code=134, log=NCCL)
    await end(world)
    await restarted(world)
    await train(world)
    say(world, 0, meta=DELETED)
    await end(world)
    fault = status(world)["firstFault"]
    assert (fault["cause"], fault["pod"], fault.get("index", 0)) == ("PodDeleted", "job-node-0-0-a0", 0)
    assert fault.keys().isdisjoint({"log", "exitCode", "container"})


async def test_restart_is_an_event_that_is_not_merged() -> None:
    world = await world_with(10)
    say(world, 0, phase="Failed", exit_code=134, log=NCCL)
    await end(world)
    assert [one.type for one in world.recorder._notes.values() if one.reason == "Restarting"] == ["Warning"]


async def test_pods_first_ready_after_a_fault_record_no_restarted_event() -> None:
    world = await world_with(10)
    world.jobset_says(counts(active=1))
    await world.settle()
    say(world, 0, phase="Failed", exit_code=1, log=TYPO)
    world.jobset_says(counts(ready=1))
    await world.settle()
    assert "Restarted" not in world.news()


async def test_restart_decided_before_a_crash_is_made_by_the_next_leader() -> None:
    world = await world_with(10)
    say(world, 0, phase="Failed", exit_code=134, log=NCCL)
    world.jobset_says(counts(failed=1), conditions=(BROKEN,))
    for _ in range(20):
        world.sync()
        await world.reconcile()
        await world.clock.advance(1)
        if status(world).get("restarts"):
            break
    assert world.job_set() is not None
    again = world.restart()
    await again.settle()
    assert (await restarted(again))["restartsCountTowardsMax"] == 1


async def test_outdated_jobset_that_was_restarted_meanwhile_is_left_alone() -> None:
    world = await world_with(10)
    job = world.train_job()
    world.put(TRAIN_JOBS, {**job, "status": {**job["status"], "restarts": 1}})
    world.sync()
    jobset = world.job_set()
    assert jobset is not None
    world.put(JOB_SETS, {**jobset, "status": {**jobset["status"], "restarts": 1}})
    await world.reconcile()
    assert world.job_set() is not None


async def test_jobset_created_again_mounts_the_claims_that_were_retained() -> None:
    """JobSet refuses a claim template that differs from a claim that exists, as each one does once it is bound."""

    def policy(name: str, **others: Any) -> Tree:
        spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
        return {"templates": [{"metadata": {"name": name}, "spec": spec}], **others}

    kept, gone = policy("kept", retentionPolicy={"whenDeleted": "Retain"}), policy("gone")
    world = await world_with(10, volumeClaimPolicies=[kept, gone])
    runtime = world.find(CLUSTER_TRAINING_RUNTIMES, "torch", "")
    assert runtime is not None
    tree = {"metadata": {"name": "job"}, "spec": {**runtime["spec"]["template"]["spec"]}}
    pod = tree["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["containers"][0]["volumeMounts"] = [{"name": "kept", "mountPath": "/a"}, {"name": "gone", "mountPath": "/b"}]
    recreate(tree, 2)
    assert tree["spec"]["volumeClaimPolicies"] == [gone]
    assert pod["volumes"] == [{"name": "kept", "persistentVolumeClaim": {"claimName": "kept-job"}}]


async def test_pod_stopped_long_after_a_fault_that_the_attempt_survived_restarts_without_counting() -> None:
    world = await world_with()
    say(world, 0, exit_code=1, runs_again=True, ended="2026-01-01T00:01:00Z", log=LOST_PEER)
    await world.settle()
    assert status(world)["firstFault"]["cause"] == "PeerLost"
    say(world, 1, meta=DELETED, phase="Failed", exit_code=143)
    await end(world)
    after = await restarted(world)
    assert (after["firstFault"]["cause"], after.get("restartsCountTowardsMax", 0)) == ("PodDeleted", 0)


async def test_pod_evicted_by_node_pressure_restarts_without_counting() -> None:
    world = await world_with()
    say(world, 0, phase="Failed", reason="Evicted", conditions=[DRAINED | {"reason": "TerminationByKubelet"}])
    await end(world)
    after = await restarted(world)
    assert (after["firstFault"]["cause"], after.get("restartsCountTowardsMax", 0)) == ("Evicted", 0)


async def test_crd_without_the_count_of_restarts_ends_the_job_as_its_jobset_does() -> None:
    world = await world_with(10)
    world.reconciler._prunes = True
    say(world, 0, phase="Failed", exit_code=134, log=NCCL)
    await end(world)
    assert ("Failed", "True", "FailedJobs") in world.conditions()


async def test_number_of_restarts_forged_in_a_label_ends_the_job_as_its_jobset_does() -> None:
    world = await world_with(10)
    jobset = world.job_set()
    assert jobset is not None
    labels = {names.LABEL_RESTARTS: "9999999999"}
    world.put(JOB_SETS, {**jobset, "metadata": {**jobset["metadata"], "labels": labels}})
    await end(world)
    assert ("Failed", "True", "FailedJobs") in world.conditions()
    assert status(world)["restarts"] == 2**31 - 1
