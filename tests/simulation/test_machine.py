"""The machine: a history is the same in every process, time is virtual, and what fails can be made small."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from unittest import mock

import pytest

from tests.simulation.history import Action, History, draw
from tests.simulation.loop import StuckError, VirtualLoop
from tests.simulation.machine import World, run
from tests.simulation.planted import PLANTED
from tests.simulation.shrink import rules_broken, shrink

ROOT = Path(__file__).resolve().parents[2]
SEEDS = (3, 24, 41, 77)
PROGRAM = f"""
from tests.simulation.machine import run
from tests.simulation.history import draw
print(*(run(draw(seed)).digest for seed in {SEEDS}))
"""


def _digests(hash_seed: str) -> list[str]:
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_a_seed_is_one_history_in_every_process() -> None:
    first = _digests("1")
    assert len(set(first)) == len(SEEDS)
    assert first == _digests("2")


def test_another_seed_is_another_history() -> None:
    history = draw(3)
    assert run(history).digest != run(history._replace(seed=4)).digest


def test_an_hour_passes_at_once_and_in_order() -> None:
    loop = VirtualLoop(Random(1))
    woken = []

    async def sleeper(seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append((seconds, loop.time()))

    async def both() -> None:
        await asyncio.gather(sleeper(3600), sleeper(60))

    loop.run_until_complete(both())
    loop.close()
    assert woken == [(60, 60.0), (3600, 3600.0)]


def test_who_waits_for_nobody_is_told() -> None:
    loop = VirtualLoop(Random(1))

    async def forever() -> None:
        await loop.create_future()

    task = loop.create_task(forever())
    with pytest.raises(StuckError, match="nobody is ready"):
        loop.run_until_complete(task)
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.close()


def test_an_error_that_nobody_awaits_is_heard_of_in_its_own_history() -> None:
    async def dies() -> None:
        raise LookupError("nobody asks")

    async def forget_a_task(*_: object) -> None:
        circle: list[object] = [asyncio.get_running_loop().create_task(dies())]
        circle.append(circle)

    history = History(5, 1, (Action(1.0, "compact", "all", {"seconds": 0.0}),))
    with mock.patch.object(World, "_compact", forget_a_task):
        broken = run(history).violations
    assert [one.rule for one in broken] == ["the machine runs"]
    assert "nobody asks" in broken[0].what
    assert not run(history).violations


def test_a_history_that_fails_is_shrunk_to_what_matters() -> None:
    history = draw(5)
    job = {"runtime": "torch", "nodes": 1, "seconds": 1, "codes": [0]}
    actions = (Action(1.0, "create", "a", job), *(one for one in history.actions if one.whom != "a"))
    (fault,) = (one for one in PLANTED if one.name == "one node for all")
    job["nodes"] = 2
    with fault.put_in():
        small = shrink(History(5, 2, actions), "what is rendered is what is said")
        assert "what is rendered is what is said" in rules_broken(small)
    assert [one.kind for one in small.actions] == ["create"]
    assert small.replicas == 1
    assert not run(small).violations
