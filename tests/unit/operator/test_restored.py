"""A cluster that is restored from a backup: the mirror still shows a TrainJob's end that is no longer told."""

from __future__ import annotations

from tests.unit.operator.objects import COMPLETED, counts, runtime, train_job
from tests.unit.operator.world import DONE, World, started
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, JOB_SETS, TRAIN_JOBS


def _undo_end(world: World) -> None:
    """Set a TrainJob back to before its end, unseen."""
    job = world.train_job()
    world.put(TRAIN_JOBS, {**job, "status": {**job["status"], "conditions": []}})


async def test_a_jobset_gets_no_time_for_an_end_that_was_undone() -> None:
    world, tree = World(), runtime()
    tree["spec"]["template"]["spec"]["ttlSecondsAfterFinished"] = 5
    world.put(CLUSTER_TRAINING_RUNTIMES, tree)
    world.put(TRAIN_JOBS, train_job())
    await world.settle()
    running = world.job_set()
    assert running is not None
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    ended = world.job_set()
    assert ended is not None
    await world.settle()
    assert world.conditions() == [("Complete", "True", "AllJobsCompleted")]
    world.put(JOB_SETS, ended)
    _undo_end(world)
    world.sync(TRAIN_JOBS)
    await world.reconcile()
    restored = world.job_set()
    assert restored is not None
    assert "ttlSecondsAfterFinished" not in restored["spec"]
    world.edit(annotations={"seen": "again"})
    assert await world.settle() == DONE
    assert world.conditions() == [("Complete", "True", "AllJobsCompleted")]
    told = world.job_set()
    assert told is not None
    assert told["spec"]["ttlSecondsAfterFinished"] == 5


async def test_a_jobset_is_not_deleted_for_an_end_that_was_undone() -> None:
    world = await started(activeDeadlineSeconds=60)
    running = world.job_set()
    assert running is not None
    await world.clock.advance(61)
    await world.settle()
    assert world.conditions() == [("Failed", "True", "DeadlineExceeded")]
    assert world.job_set() is None
    world.put(JOB_SETS, running)
    _undo_end(world)
    world.sync(TRAIN_JOBS)
    await world.reconcile()
    assert world.job_set() is not None
    world.edit(annotations={"seen": "again"})
    assert await world.settle() == DONE
    assert world.conditions() == [("Failed", "True", "DeadlineExceeded")]
    assert world.job_set() is None
