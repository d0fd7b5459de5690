"""What broke the reconcile of a TrainJob under fire: each test is named for what went wrong."""

from __future__ import annotations

import pytest

from tests.unit.operator.objects import train_job
from tests.unit.operator.world import World
from trainplane.kube.controller import Failed, RequeueAfter
from trainplane.operator.errors import RuntimeMissingError
from trainplane.operator.resources import CONFIG_MAPS, TRAIN_JOBS


async def test_a_reconcile_in_trouble_dropped_its_deadline_timer() -> None:
    world = World()  # no runtime: the TrainJob cannot be made to run
    world.put(TRAIN_JOBS, train_job(activeDeadlineSeconds=60))
    await world.clock.advance(20)
    world.sync()
    result = await world.reconcile()
    assert isinstance(result, Failed), "an error alone is retried after up to five minutes"
    assert isinstance(result.error, RuntimeMissingError)
    assert result.within == 40
    assert world.news() == ["TrainJobResourcesCreationFailed"]
    await world.clock.advance(40)
    await world.settle()
    assert world.conditions() == [("Failed", "True", "DeadlineExceeded")]


async def test_a_deadline_came_late_while_an_earlier_trainjob_was_waited_for() -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job(meta={"uid": "first"}))
    await world.settle()
    world.delete(TRAIN_JOBS)
    world.put(TRAIN_JOBS, train_job(meta={"uid": "second"}, activeDeadlineSeconds=1))
    world.sync()
    assert await world.reconcile() == RequeueAfter(1.0)


async def test_trouble_without_a_deadline_is_raised_as_ever() -> None:
    world = World()
    world.put(TRAIN_JOBS, train_job())
    world.sync()
    with pytest.raises(RuntimeMissingError):
        await world.reconcile()
    assert world.find(CONFIG_MAPS, "job-runtime-snapshot") is None
