"""A TrainJob that begins after another: it is let into its queue once, or fails with the other's name."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from tests.unit.operator.objects import condition, train_job
from tests.unit.operator.world import World
from trainplane.api import names
from trainplane.kube.errors import ConflictError
from trainplane.resources import TRAIN_JOBS

GATES = names.ANNOTATION_ADMISSION_GATES
COMPLETE = condition("Complete", "AllJobsCompleted")
FAILED = condition("Failed", "FailedJobs")


def waiting(gates: str = names.ANNOTATION_AFTER, *, earlier: str = "data", **spec: Any) -> World:
    """Return a world with a queued TrainJob that begins after another."""
    world = World().with_runtime()
    meta = {
        "labels": {names.LABEL_QUEUE: "queue"},
        "annotations": {names.ANNOTATION_AFTER: earlier, GATES: gates},
    }
    world.put(TRAIN_JOBS, train_job(meta=meta, **({"suspend": True} | spec)))
    return world


def gates(world: World) -> Any:
    return world.train_job()["metadata"]["annotations"].get(GATES)


def earlier(world: World, *conditions: Any, name: str = "data") -> None:
    world.put(TRAIN_JOBS, {**train_job(name), "status": {"conditions": list(conditions)}})


async def test_it_waits_while_the_other_is_absent_or_runs() -> None:
    world = waiting()
    await world.settle()
    assert world.train_job()["status"]["reason"] == "WaitsForTrainJob"
    earlier(world, condition("Suspended", status="False"))
    await world.settle()
    assert gates(world) == names.ANNOTATION_AFTER
    assert "patch trainjobs job" not in world.take_writes()


async def test_it_is_let_into_its_queue_when_the_other_is_complete() -> None:
    world = waiting()
    earlier(world, COMPLETE)
    await world.settle()
    assert world.take_writes().count("patch trainjobs job") == 1
    assert gates(world) is None
    assert world.train_job()["spec"]["suspend"], "Kueue starts it"
    assert world.train_job()["status"]["reason"] == "WaitsForQuota"


async def test_gates_of_others_stay() -> None:
    world = waiting(f"example.com/budget, {names.ANNOTATION_AFTER},example.com/licence")
    earlier(world, COMPLETE)
    await world.settle()
    assert gates(world) == "example.com/budget,example.com/licence"


async def test_a_gate_that_changed_meanwhile_is_looked_at_again() -> None:
    world = waiting()
    earlier(world, COMPLETE)
    world.client.refuse["patch trainjobs"] = deque([ConflictError("changed")])
    await world.settle()
    await world.settle()
    assert gates(world) is None


async def test_it_fails_with_the_other() -> None:
    world = waiting()
    earlier(world, FAILED)
    await world.settle()
    assert ("Failed", "True", "EarlierTrainJobFailed") in world.conditions()
    assert "TrainJob data" in world.messages()[-1]
    assert world.job_set() is None
    assert gates(world) == names.ANNOTATION_AFTER


async def test_what_runs_without_waiting_is_not_failed() -> None:
    world = waiting(suspend=False)
    earlier(world, FAILED)
    await world.settle()
    assert world.conditions() == []


async def test_on_a_hub_only_the_gate_is_ours() -> None:
    world = waiting(managedBy=names.MANAGED_BY_MULTIKUEUE)
    earlier(world, COMPLETE)
    await world.settle()
    assert gates(world) is None
    assert world.job_set() is None


@pytest.mark.parametrize("name", ["job", "other", ""])
async def test_a_gate_without_an_end_in_sight_stays(name: str) -> None:
    world = waiting(earlier=name)
    earlier(world, COMPLETE)
    await world.settle()
    assert gates(world) == names.ANNOTATION_AFTER
