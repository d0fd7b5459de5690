from __future__ import annotations

import asyncio

import pytest

from trainplane.kube import pace as pace_module
from trainplane.kube.pace import Pace


class Labour:
    """Work that takes a millisecond of machine time each, on a machine whose time is ours."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.done = 0
        monkeypatch.setattr(pace_module, "perf_counter", lambda: self.now)

    async def work(self, pace: Pace, units: int) -> None:
        for _ in range(units):
            self.now += 0.001
            self.done += 1
            if pace.is_due():
                await pace.rest()


@pytest.fixture
def labour(monkeypatch: pytest.MonkeyPatch) -> Labour:
    return Labour(monkeypatch)


async def longest_stall(labour: Labour, *tasks: asyncio.Task[None]) -> int:
    """Return the most units done between two turns of somebody else."""
    stall = 0
    while not all(task.done() for task in tasks):
        before = labour.done
        await asyncio.sleep(0)
        stall = max(stall, labour.done - before)
    return stall


async def test_a_slice_lasts_as_long_as_said(labour: Labour) -> None:
    pace = Pace(slice_seconds=0.0025)
    await pace.rest()
    assert not pace.is_due()
    labour.now = 0.0024
    assert not pace.is_due()
    labour.now = 0.0026
    assert pace.is_due()


async def test_others_run_after_each_slice(labour: Labour) -> None:
    worker = asyncio.create_task(labour.work(Pace(slice_seconds=0.0095), 100))
    assert 10 <= await longest_stall(labour, worker) <= 11


async def test_many_users_share_one_slice(labour: Labour) -> None:
    pace = Pace(slice_seconds=0.0095)
    workers = [asyncio.create_task(labour.work(pace, 100)) for _ in range(10)]
    assert await longest_stall(labour, *workers) <= 10 + 9 + 1, "a slice for one, a unit for each of the others"
    assert labour.done == 1000


async def test_a_user_cancelled_while_resting_does_not_stop_the_others(labour: Labour) -> None:
    pace = Pace(slice_seconds=0.0015)
    first, second = (asyncio.create_task(labour.work(pace, 50)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert await longest_stall(labour, second) <= 3
    assert first.cancelled()
