"""What a TrainJob's life costs the API server: what waits for the next write, and what never does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.operator.objects import COMPLETED, counts, train_job
from tests.unit.operator.world import DONE, Tree, World, started
from trainplane.kube.controller import RequeueAfter
from trainplane.operator.mirrors import FRESH_SECONDS
from trainplane.operator.objects import SETTLE_SECONDS
from trainplane.operator.status import RESUMED_SECONDS, STARTED_SECONDS, UNHURRIED_SECONDS
from trainplane.resources import JOB_SETS, TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Callable

QUEUED = {"labels": {"kueue.x-k8s.io/queue-name": "queue"}}
PATCH = [
    {
        "manager": "kueue.x-k8s.io/manager",
        "trainingRuntimeSpec": {
            "template": {
                "spec": {
                    "replicatedJobs": [
                        {
                            "name": "node",
                            "template": {"spec": {"template": {"spec": {"nodeSelector": {"flavor": "a"}}}}},
                        }
                    ]
                }
            }
        },
    }
]


async def queued() -> World:
    """Return a world with a TrainJob that waits in a queue, and nothing was asked yet."""
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job(meta=QUEUED, suspend=True))
    await world.settle()
    world.jobset_says(counts(suspended=1))
    world.client.asked.clear()
    return world


async def test_a_whole_life_under_kueue_is_four_statuses_two_jobsets_and_one_snapshot() -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job(meta=QUEUED, suspend=True))
    stages: tuple[Callable[[], None], ...] = (
        lambda: None,
        lambda: world.jobset_says(counts(suspended=1)),
        lambda: world.edit(runtimePatches=PATCH),
        lambda: world.edit(suspend=False),
        lambda: world.jobset_says(counts(active=1)),
        lambda: world.jobset_says(counts(active=1, ready=1)),
        lambda: world.jobset_says(counts(succeeded=1)),
        lambda: world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,)),
    )
    for stage in stages:
        stage()
        for _ in range(3):
            world.hear()
            await world.reconcile()
    assert [str(one) for one in world.client.asked] == [
        "create configmaps job-runtime-snapshot",
        "apply jobsets job",
        "patch trainjobs/status job",  # Suspended
        "apply jobsets job",
        "patch trainjobs/status job",  # Resumed, and there are pods
        "patch trainjobs/status job",  # pods are ready
        "patch trainjobs/status job",  # Complete
    ]
    jobset = world.job_set()
    assert jobset is not None
    assert "flavor" in str(jobset), "what Kueue chose came with the resume"


async def test_an_edit_of_what_waits_is_applied_by_itself_if_no_resume_follows() -> None:
    world = await queued()
    world.edit(runtimePatches=PATCH)
    world.sync()
    assert await world.reconcile() == RequeueAfter(SETTLE_SECONDS)
    assert world.take_writes() == []
    await world.clock.advance(SETTLE_SECONDS)
    await world.reconcile()
    assert world.take_writes() == ["apply jobsets job"]


async def test_a_jobset_that_somebody_else_touched_is_put_right_at_once() -> None:
    world = await queued()
    jobset = world.job_set()
    assert jobset is not None
    meta = {**jobset["metadata"], "generation": 7, "labels": {"touched": "yes"}}
    world.put(world.stores.job_sets.resource, {**jobset, "metadata": meta})
    world.edit(runtimePatches=PATCH)
    world.sync()
    await world.reconcile()
    assert "apply jobsets job" in world.take_writes()


@pytest.mark.parametrize(("silent_for", "reads"), [(0.0, 0), (FRESH_SECONDS + 0.1, 1)])
async def test_a_mirror_that_has_heard_just_now_needs_no_read_before_a_resume(silent_for: float, reads: int) -> None:
    world = await queued()
    world.edit(suspend=False)
    world.hear()
    await world.clock.advance(silent_for)
    await world.reconcile()
    asked = [str(one) for one in world.client.asked]
    assert asked.count("get trainjobs job") == reads
    assert "apply jobsets job" in asked


async def test_a_mirror_that_fell_silent_is_not_believed() -> None:
    world = await queued()
    world.edit(suspend=False)
    world.hear()
    world.edit(suspend=True)  # the mirror does not hear of it
    await world.clock.advance(FRESH_SECONDS + 0.1)
    await world.reconcile()
    assert "apply jobsets job" not in world.take_writes()


@pytest.mark.parametrize("meta", [{}, QUEUED], ids=["no queue", "a queue"])
@pytest.mark.parametrize(("silent_for", "reads"), [(0.0, 0), (FRESH_SECONDS + 0.1, 1)])
async def test_a_beginning_that_was_just_heard_of_needs_no_read(silent_for: float, reads: int, meta: Tree) -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job(meta=meta, suspend=False))
    world.hear()
    await world.clock.advance(silent_for)
    await world.reconcile()
    asked = [str(one) for one in world.client.asked]
    assert asked.count("get trainjobs job") == reads
    assert asked.count("get jobsets job") == 0
    assert "apply jobsets job" in asked


async def test_a_job_that_was_deleted_with_its_snapshot_does_not_begin_again() -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job())
    world.hear()
    world.delete(TRAIN_JOBS)  # the mirror does not hear of it
    await world.clock.advance(FRESH_SECONDS + 0.1)
    assert await world.reconcile() == RequeueAfter(1.0)
    assert world.job_set() is None
    world.hear()
    assert await world.settle() == DONE


async def test_a_job_that_was_moved_before_it_began_does_not_begin_where_it_was() -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job(meta=QUEUED, suspend=False, runtimePatches=PATCH))
    world.hear()
    world.edit(runtimePatches=[])  # evicted and admitted anew: the mirror does not hear of it
    await world.clock.advance(FRESH_SECONDS + 0.1)
    assert await world.reconcile() == RequeueAfter(1.0)
    assert world.job_set() is None
    world.hear()
    await world.settle()
    jobset = world.job_set()
    assert jobset is not None
    (job,) = jobset["spec"]["replicatedJobs"]
    assert "nodeSelector" not in job["template"]["spec"]["template"]["spec"]


@pytest.mark.parametrize(("silent_for", "reads"), [(0.0, 0), (FRESH_SECONDS + 0.1, 1)])
async def test_an_end_that_was_just_heard_of_is_told_without_a_read(silent_for: float, reads: int) -> None:
    world = await started()
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    world.hear()
    await world.clock.advance(silent_for)
    world.client.asked.clear()
    await world.reconcile()
    assert [str(one) for one in world.client.asked].count("get jobsets job") == reads
    assert world.conditions() == [("Complete", "True", "AllJobsCompleted")]


async def test_an_end_that_a_restore_undid_is_not_told() -> None:
    world = await started()
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    world.hear()
    world.jobset_says(counts(active=1))  # it runs again: the mirror does not hear of it
    await world.clock.advance(FRESH_SECONDS + 0.1)
    assert await world.reconcile() == RequeueAfter(1.0)
    assert world.conditions() == []
    world.delete(JOB_SETS)  # of what is gone holds what was seen
    await world.reconcile()
    assert world.conditions() == [("Complete", "True", "AllJobsCompleted")]


async def test_a_finished_job_does_not_run_again_where_only_its_jobsets_end_was_heard_of() -> None:
    world = await started()
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    successor = world.restart()
    successor.sync()
    await world.settle()
    assert world.conditions() == [("Complete", "True", "AllJobsCompleted")]
    world.delete(JOB_SETS)
    successor.sync(TRAIN_JOBS)
    assert await successor.reconcile() == RequeueAfter(1.0)
    assert successor.job_set() is None


@pytest.mark.parametrize(("meta", "at_once"), [(QUEUED, True), ({}, False)])
async def test_kueue_hears_at_once_that_pods_are_ready_and_people_a_moment_later(meta: Tree, *, at_once: bool) -> None:
    world = await started(meta=meta)
    world.jobset_says(counts(ready=1))
    world.sync()
    await world.reconcile()
    assert bool(world.take_writes()) is at_once
    await world.clock.advance(STARTED_SECONDS)
    await world.reconcile()
    assert bool(world.take_writes()) is not at_once


async def test_a_job_that_is_over_in_a_moment_says_that_alone() -> None:
    world = await started()
    for said in ((counts(active=1),), (counts(ready=1),), (counts(succeeded=1),)):
        world.jobset_says(*said)
        world.sync()
        await world.reconcile()
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    world.sync()
    await world.reconcile()
    assert world.take_writes() == ["patch trainjobs/status job"]


async def test_kueue_hears_at_once_that_there_are_pods() -> None:
    world = await started(meta=QUEUED)
    world.jobset_says(counts(active=1))
    world.sync()
    await world.reconcile()
    assert world.take_writes() == ["patch trainjobs/status job"], "if it stops the job, it waits for them"


async def test_a_resume_is_told_soon_if_no_pods_come() -> None:
    world = await queued()
    world.edit(suspend=False)
    world.hear()
    await world.reconcile()
    world.take_writes()
    world.sync()
    assert await world.reconcile() == RequeueAfter(RESUMED_SECONDS)
    await world.clock.advance(RESUMED_SECONDS)
    await world.reconcile()
    assert world.take_writes() == ["patch trainjobs/status job"]
    assert world.conditions() == [("Suspended", "False", "Resumed")]


async def test_counts_after_the_end_are_told_once() -> None:
    world = await started()
    world.jobset_says(counts(active=1), conditions=(COMPLETED,))
    await world.settle()
    world.take_writes()
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    world.sync()
    assert await world.reconcile() == DONE
    assert world.take_writes() == ["patch trainjobs/status job"]
    world.sync()
    assert await world.reconcile() == DONE
    assert world.take_writes() == []


async def test_counts_that_nobody_waits_for_are_told_in_time() -> None:
    world = await started()
    world.jobset_says(counts(active=1))
    world.sync()
    assert await world.reconcile() == RequeueAfter(UNHURRIED_SECONDS)
    await world.clock.advance(UNHURRIED_SECONDS)
    await world.reconcile()
    assert world.take_writes() == ["patch trainjobs/status job"]
    assert world.train_job()["status"]["phase"] == "Pending"


async def test_that_the_last_pod_of_a_stopped_job_is_gone_is_told_at_once() -> None:
    world = await started(meta=QUEUED)
    world.jobset_says(counts(active=1, ready=1))
    await world.settle()
    world.edit(suspend=True)
    await world.settle()
    world.take_writes()
    world.jobset_says(counts(suspended=1))
    world.sync()
    await world.reconcile()
    assert world.take_writes() == ["patch trainjobs/status job"], "Kueue gives its quota to others by it"
    assert not world.train_job()["status"]["jobsStatus"][0]["active"]
