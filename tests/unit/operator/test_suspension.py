"""Suspend, resume, and what becomes of objects that were touched."""

from __future__ import annotations

from tests.unit.operator.objects import counts, train_job
from tests.unit.operator.world import DONE, World, started
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, JOB_SETS, TRAIN_JOBS


async def test_created_suspended() -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job(suspend=True))
    assert await world.settle() == DONE
    jobset = world.job_set()
    assert jobset is not None
    assert jobset["spec"]["suspend"] is True
    assert world.conditions() == [("Suspended", "True", "Suspended")]
    assert world.news() == ["JobSetCreated", "Suspended"]
    assert world.messages()[0] == "created JobSet job for 2 pods, held back by spec.suspend"


async def test_a_queued_trainjob_at_rest_causes_no_request() -> None:
    world = await started(suspend=True)
    world.jobset_says(counts(suspended=1))
    await world.settle()
    world.take_writes()
    for _ in range(3):
        assert await world.settle() == DONE
    assert world.client.asked == []


async def test_resume_and_suspend_again() -> None:
    world = await started(suspend=True)
    world.edit(suspend=False)
    await world.settle()
    jobset = world.job_set()
    assert jobset is not None
    assert jobset["spec"]["suspend"] is False
    assert world.conditions() == [("Suspended", "False", "Resumed")]
    world.edit(suspend=True)
    await world.settle()
    jobset = world.job_set()
    assert jobset is not None
    assert jobset["spec"]["suspend"] is True
    assert world.conditions() == [("Suspended", "True", "Suspended")]
    assert world.news() == ["JobSetCreated", "Resumed", "Suspended"]  # the second Suspended counts with the first


async def test_a_resumed_trainjob_that_runs_has_no_condition() -> None:
    world = await started(suspend=True)
    world.edit(suspend=False)
    await world.settle()
    world.jobset_says(counts(active=1, ready=1))
    assert await world.settle() == DONE
    assert world.conditions() == []
    assert world.train_job()["status"]["jobsStatus"] == [counts(active=1, ready=1)]
    world.edit(suspend=True)
    await world.settle()
    assert world.conditions() == [("Suspended", "True", "Suspended")]
    assert world.news() == ["JobSetCreated", "Resumed", "Started", "Suspended"]


async def test_patches_reach_a_suspended_jobset() -> None:
    world = await started(suspend=True)
    pod = {"template": {"spec": {"nodeSelector": {"pool": "gpu"}}}}
    patch = {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": pod}}]}}
    world.edit(
        runtimePatches=[{"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": {"template": patch}}],
        suspend=True,
    )
    await world.settle()
    jobset = world.job_set()
    assert jobset is not None
    spec = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"pool": "gpu"}
    world.edit(suspend=False)
    await world.settle()
    assert jobset["spec"]["suspend"] is True  # the tree of before
    assert world.job_set()["spec"]["suspend"] is False  # type: ignore[index] # it exists


async def test_what_runs_is_never_changed() -> None:
    world = await started()
    before = world.job_set()
    world.edit(
        runtimePatches=[
            {"manager": "example.com/x", "trainingRuntimeSpec": {"template": {"metadata": {"labels": {"a": "b"}}}}}
        ]
    )
    assert await world.settle() == DONE
    assert world.job_set() == before
    assert world.take_writes() == []


async def test_an_edit_of_the_runtime_does_not_reach_trainjobs_that_began() -> None:
    world = await started(suspend=True)
    world.with_runtime(image="img:2")
    world.edit(suspend=False)
    await world.settle()
    jobset = world.job_set()
    assert jobset is not None
    container = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "img:1"


async def test_a_trainjob_goes_on_when_its_runtime_is_deleted() -> None:
    world = await started(suspend=True)
    world.delete(CLUSTER_TRAINING_RUNTIMES, "torch", "")
    world.edit(suspend=False)
    await world.settle()
    assert world.job_set()["spec"]["suspend"] is False  # type: ignore[index] # it exists
    world.delete(JOB_SETS)
    await world.settle()
    assert world.job_set() is not None


async def test_after_a_restart_a_queued_trainjob_is_read_and_not_written() -> None:
    world = await started(suspend=True)
    jobset = world.job_set()
    assert jobset is not None
    managed = [{"manager": "trainer", "operation": "Apply", "fieldsV1": {"f:spec": {"f:suspend": {}}}}]
    world.put(JOB_SETS, {**jobset, "metadata": {**jobset["metadata"], "managedFields": managed}})
    fresh = world.restart()
    assert await fresh.settle() == DONE
    assert fresh.take_writes() == []


async def test_a_jobset_deleted_by_hand_comes_back() -> None:
    world = await started()
    world.delete(JOB_SETS)
    await world.settle()
    assert world.job_set() is not None
    assert world.take_writes() == ["apply jobsets job"]


async def test_a_jobset_on_its_way_out_is_waited_for() -> None:
    world = await started(suspend=True)
    jobset = world.job_set()
    assert jobset is not None
    meta = {**jobset["metadata"], "deletionTimestamp": "2026-01-01T00:01:00Z", "finalizers": ["foregroundDeletion"]}
    world.put(JOB_SETS, {**jobset, "metadata": {**meta, "generation": 2}})
    assert await world.settle() == DONE
    assert world.take_writes() == []
