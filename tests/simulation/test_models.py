"""The models do what the engines did: each recorded history, played on them again, stands the same after each step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.simulation.fleet.replay import replay_fleet
from tests.simulation.fleet.scripts import CUT_OFF, FLEETS
from tests.simulation.recordings import RECORDED, read_recording
from tests.simulation.replay import replay_jobset, replay_queue
from tests.simulation.scripts import JOBSETS, QUEUES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.simulation.recordings import Observation
    from tests.suite import SuiteReport

SEEDS = (1, 2, 3)
"""Delays of the models; where they come to rest is the same for all."""
KEPT = sorted(RECORDED.glob("*/*.jsonl"))
REPLAYS: dict[str, Callable[..., Any]] = {
    "jobset": replay_jobset,
    "queue": replay_queue,
    "fleet": replay_fleet,
}


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}: {path.stem}")
def test_a_model_stands_as_its_engine_stood(path: Path, report: SuiteReport) -> None:
    _, kept = read_recording(path)
    steps = [one.step for one in kept]
    differing = [one for seed in SEEDS if (one := _difference(kept, REPLAYS[path.parent.name](steps, seed)))]
    report.row(model=path.parent.name, recorded=path.stem, steps=len(steps), disagreements=len(differing))
    assert not differing, differing[0]


def _difference(kept: list[Observation], replayed: list[Observation]) -> str:
    """Describe the first step after which the model's state is wrong; empty if the model is right."""
    for number, (engine, model) in enumerate(zip(kept, replayed, strict=True), 1):
        if engine != model:
            return f"step {number}, {engine.step}: the engine's state is\n{engine}\nbut the model's state is\n{model}"
    return ""


def test_every_script_is_recorded_as_it_is_written() -> None:
    kept = {
        (path.parent.name, name): [one.step for one in observations]
        for path in KEPT
        for name, observations in [read_recording(path)]
    }
    scripts = {("jobset", name): steps for name, steps in JOBSETS.items()}
    scripts |= {("queue", name): steps for name, steps in QUEUES.items()}
    scripts |= {("fleet", name): steps for name, steps in (FLEETS | CUT_OFF).items()}
    assert kept == scripts
