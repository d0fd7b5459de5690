"""JobSets that another release, or the reference, made without progress stay as they are."""

from __future__ import annotations

from typing import Any

from tests.unit.operator.objects import train_job
from tests.unit.operator.world import World
from trainplane.render.pipeline import Pipeline
from trainplane.render.plugins.trainjobstatus import TrainJobStatus
from trainplane.resources import TRAIN_JOBS

REPORTING = Pipeline.default(also=[TrainJobStatus("https://s")])


async def taken_over(**spec: Any) -> World:
    """Return a TrainJob's world that our release takes over from one without progress."""
    earlier = World().with_runtime()
    earlier.put(TRAIN_JOBS, train_job(**spec))
    await earlier.settle()
    world = World(earlier.storage, earlier.clock, pipeline=REPORTING)
    await world.settle()
    return world


async def test_one_that_runs_is_not_touched() -> None:
    world = await taken_over()
    assert world.take_writes() == []


async def test_one_that_is_suspended_is_not_touched_until_it_is_resumed() -> None:
    world = await taken_over(suspend=True)
    assert "kubeflow-trainer-token" not in str(world.job_set())
    world.edit(suspend=False)
    await world.settle()
    jobset = world.job_set()
    assert jobset is not None
    assert jobset["spec"]["suspend"] is False
    assert "kubeflow-trainer-token" not in str(jobset)


async def test_one_that_is_made_anew_reports() -> None:
    world = World(pipeline=REPORTING).with_runtime()
    world.put(TRAIN_JOBS, train_job(suspend=True))
    await world.settle()
    assert "kubeflow-trainer-token" in str(world.job_set())
    made = world.job_set()
    again = world.restart()
    await again.settle()
    assert again.job_set() == made
