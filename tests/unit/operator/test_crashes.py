"""The operator dies at each write of a story, before the server acted on it or after; a fresh one ends the same way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.operator.objects import condition, counts, train_job
from tests.unit.operator.world import Crash, CrashError, World
from trainplane.resources import CONFIG_MAPS, JOB_SETS, TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Step = Callable[[World], None]

COMPLETED = condition("Completed", "AllJobsCompleted")


def create(world: World) -> None:
    world.put(TRAIN_JOBS, train_job())


def create_suspended(world: World) -> None:
    world.put(TRAIN_JOBS, train_job(suspend=True, activeDeadlineSeconds=60))


def resume(world: World) -> None:
    world.edit(suspend=False)


def suspend(world: World) -> None:
    world.edit(suspend=True)


def lose_the_jobset(world: World) -> None:
    world.delete(JOB_SETS)


def run(world: World) -> None:
    world.jobset_says(counts(ready=1, active=1))


def complete(world: World) -> None:
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))


def pass_the_deadline(world: World) -> None:
    world.clock._elapsed += 100


STORIES: dict[str, tuple[Step, ...]] = {
    "runs to its end": (create, run, complete),
    "queued, runs, preempted, runs again": (create_suspended, resume, run, suspend, resume, complete),
    "takes too long": (create_suspended, resume, run, pass_the_deadline),
    "loses its JobSet": (create, run, lose_the_jobset, run, complete),
}


def outcome(world: World) -> dict[str, Any]:
    """Return the end state: what exists and what it says, without versions and times."""
    status = world.train_job().get("status") or {}
    jobset, snapshot = world.job_set(), world.snapshot()
    return {
        "conditions": world.conditions(),
        "jobs": status.get("jobsStatus"),
        "digest": status.get("runtimeDigest"),
        "jobset": jobset and (jobset["spec"], jobset["metadata"]["ownerReferences"]),
        "snapshot": snapshot and snapshot["data"],
    }


async def tell(steps: tuple[Step, ...], look: Callable[[World], Awaitable[World]]) -> World:
    world = World().with_runtime()
    for step in steps:
        step(world)
        world = await look(world)
    return world


async def calmly(world: World) -> World:
    await world.settle()
    return world


@pytest.mark.parametrize("story", STORIES)
async def test_dying_at_any_write_changes_nothing_in_the_end(story: str) -> None:
    steps = STORIES[story]
    undisturbed = await tell(steps, calmly)
    wanted = outcome(undisturbed)
    points = len(undisturbed.client.writes)
    assert points >= 3
    for acted in (False, True):
        for at in range(points):
            once = Death(at, acted=acted)
            assert outcome(await tell(steps, once.look)) == wanted, f"write {at}, acted: {acted}"
            assert once.died


@dataclass
class Death:
    """A way to look that dies at the so-manieth write of the whole story, and is then begun anew."""

    at: int
    acted: bool
    died: bool = False
    written: int = 0

    async def look(self, world: World) -> World:
        before = len(world.client.writes)
        if not self.died:
            world.client.crash = Crash(self.at - self.written + before, acted=self.acted)
        try:
            await world.settle()
        except CrashError:
            self.died = True
            world = world.restart()
            await world.settle()
        else:
            self.written += len(world.client.writes) - before
        return world


@pytest.mark.parametrize("suspended", [False, True])
async def test_a_fresh_operator_takes_over_without_a_write(suspended: bool) -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job(suspend=suspended))
    await world.settle()
    world.jobset_says(counts(active=1))
    await world.settle()
    jobset = world.job_set()
    assert jobset is not None
    managed = [{"manager": "trainer", "operation": "Apply", "fieldsV1": {"f:spec": {"f:suspend": {}}}}]
    world.put(JOB_SETS, {**jobset, "metadata": {**jobset["metadata"], "managedFields": managed}})
    before = world.job_set(), world.snapshot(), world.train_job()
    fresh = world.restart()
    await fresh.settle()
    assert fresh.client.writes == []
    assert (fresh.job_set(), fresh.snapshot(), fresh.train_job()) == before


async def test_a_trainjob_of_an_older_release_gets_its_snapshot() -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job())
    await world.settle()
    world.delete(CONFIG_MAPS, "job-runtime-snapshot")
    fresh = world.restart()
    await fresh.settle()
    assert fresh.snapshot() is not None
    assert fresh.client.writes == ["create configmaps job-runtime-snapshot"]
