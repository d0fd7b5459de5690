"""JobSets of releases that left torchrun to the TrainJob: they run on, resume, and cost no refused write."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.operator.objects import counts, runtime, train_job
from tests.unit.operator.test_begun import digest, owned_by_us, plant
from tests.unit.operator.world import DONE, PIPELINE, World
from trainplane.operator.errors import SnapshotError
from trainplane.render.plugins.torchrun import Torchrun
from trainplane.resources import TRAIN_JOBS

FORMER = PIPELINE.without(Torchrun.name)
ARGS: Any = {"trainer": {"args": ["train.py"]}}


async def upgraded(**spec: Any) -> World:
    """Return a world in which a former release made a JobSet, and today's has just started."""
    world = World(pipeline=FORMER).with_runtime()
    world.put(TRAIN_JOBS, train_job(**ARGS, **spec))
    await world.settle()
    owned_by_us(world)
    world.pipeline = PIPELINE
    return world.restart()


def node(world: World) -> dict[str, Any]:
    jobset = world.job_set()
    assert jobset is not None
    found: dict[str, Any] = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    return found


def variables(world: World) -> set[str]:
    return {entry["name"] for entry in node(world)["env"]}


async def test_what_runs_is_not_touched() -> None:
    world = await upgraded()
    uid = (world.job_set() or {})["metadata"]["uid"]
    world.jobset_says(counts(active=1, ready=1))
    assert await world.settle() == DONE
    assert not [one for one in world.take_writes() if "jobsets" in one]
    assert (world.job_set() or {})["metadata"]["uid"] == uid
    assert "command" not in node(world)


async def test_what_waits_costs_no_write_and_resumes_as_it_was_made() -> None:
    world = await upgraded(suspend=True)
    await world.settle()
    assert not [one for one in world.take_writes() if "jobsets" in one]
    world.edit(suspend=False)
    assert await world.settle() == DONE
    assert world.take_writes().count("apply jobsets job") == 1
    assert (world.job_set() or {})["spec"]["suspend"] is False
    assert "command" not in node(world)
    assert "MASTER_ADDR" not in variables(world)


async def test_what_begins_anew_is_made_as_today() -> None:
    world = await upgraded()
    await world.settle()
    world.put(TRAIN_JOBS, train_job("other", **ARGS))
    await world.settle("other")
    made = world.job_set("other")
    assert made is not None
    container = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["torchrun"]


@pytest.mark.parametrize("swapped", [False, True])
async def test_its_snapshot_is_proved_by_what_was_made_of_it(swapped: bool) -> None:
    world = await upgraded(suspend=True)
    job = world.train_job()
    job.pop("status", None)  # the reference's, or lost
    world.put(TRAIN_JOBS, job)
    world.with_runtime(image="img:2")
    fresh = world.restart()
    if not swapped:
        await fresh.settle()
        assert digest(fresh)
        return
    plant(fresh, runtime(image="evil:1"))
    fresh.sync()
    with pytest.raises(SnapshotError):
        await fresh.reconcile()
