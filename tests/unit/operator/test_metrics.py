from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tests.unit.operator.objects import condition, train_job
from tests.unit.operator.world import World
from trainplane.operator.metrics import TrainJobMetrics
from trainplane.operator.stores import state_of
from trainplane.resources import TRAIN_JOBS


def count(world: World, state: str) -> float | None:
    labels = {"namespace": "team", "runtime": "torch", "state": state}
    return world.registry.get_sample_value("trainplane_trainjobs", labels)


@pytest.mark.parametrize(
    ("suspend", "true", "state"),
    [
        (False, set(), "active"),
        (True, {"Suspended"}, "suspended"),
        (True, {"Complete", "Suspended"}, "finished"),
        (False, {"Failed"}, "failed"),
        (False, {"Complete", "Failed"}, "failed"),
    ],
)
def test_one_state_each(suspend: bool, true: set[str], state: str) -> None:
    assert state_of(suspend=suspend, true_conditions=true) == state


def put(world: World, name: str, status: dict[str, Any] | None = None, **spec: Any) -> None:
    world.put(TRAIN_JOBS, {**train_job(name, **spec), "status": status or {}})
    world.sync()


def test_counts_follow_every_change() -> None:
    world = World()
    put(world, "a")
    put(world, "b", suspend=True)
    assert (count(world, "active"), count(world, "suspended"), count(world, "failed")) == (1, 1, None)
    put(world, "b", suspend=False)
    assert (count(world, "active"), count(world, "suspended")) == (2, None)
    put(world, "a", {"conditions": [condition("Complete")]})
    put(world, "b", {"conditions": [condition("Failed"), condition("Complete", status="False")]})
    assert (count(world, "finished"), count(world, "failed"), count(world, "active")) == (1, 1, None)
    world.delete(TRAIN_JOBS, "a")
    world.sync()
    assert count(world, "finished") is None


def test_a_trainjob_that_cannot_be_read_is_not_counted() -> None:
    world = World()
    world.put(TRAIN_JOBS, {**train_job("a"), "spec": "none"})
    world.sync()
    assert b"trainplane_trainjobs{" not in generate_latest(world.registry)


def test_names_and_help() -> None:
    registry = CollectorRegistry()
    TrainJobMetrics(registry).started(3.0)
    text = generate_latest(registry).decode()
    assert "# TYPE trainplane_trainjobs gauge" in text
    assert 'trainplane_trainjob_start_seconds_bucket{le="5.0"} 1.0' in text
    assert 'trainplane_trainjob_start_seconds_bucket{le="2.5"} 0.0' in text
