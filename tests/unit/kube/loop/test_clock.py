from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from trainplane.kube.clock import Clock, SystemClock
from trainplane.kube.testing.clock import FakeClock


async def test_sleepers_wake_in_the_order_of_their_times() -> None:
    clock = FakeClock()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic()))

    tasks = [asyncio.create_task(sleeper(*args)) for args in (("c", 3.0), ("a", 1.0), ("b", 2.0), ("late", 10.0))]
    await clock.advance(5)
    assert woken == [("a", 1.0), ("b", 2.0), ("c", 3.0)]
    assert clock.monotonic() == 5
    await clock.advance(5)
    assert woken[-1] == ("late", 10.0)
    await asyncio.gather(*tasks)


async def test_a_sleeper_that_sleeps_again_is_woken_again_within_one_advance() -> None:
    clock = FakeClock()
    ticks: list[float] = []

    async def ticker() -> None:
        while True:
            await clock.sleep(1)
            ticks.append(clock.monotonic())

    task = asyncio.create_task(ticker())
    await clock.advance(3.5)
    assert ticks == [1.0, 2.0, 3.0]
    task.cancel()
    await clock.settle()
    assert clock.sleepers == 0


async def test_sleeping_for_no_time_needs_no_advance() -> None:
    await FakeClock().sleep(0)
    await FakeClock().sleep(-1)


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(1))
    await clock.settle()
    assert clock.sleepers == 1
    task.cancel()
    await clock.advance(2)
    assert task.cancelled()
    assert clock.sleepers == 0


async def test_a_sleeper_cancelled_in_the_instant_it_wakes_does_no_harm() -> None:
    clock = FakeClock()
    first = asyncio.create_task(clock.sleep(1))
    await clock.settle()

    async def cancel_first() -> None:
        first.cancel()
        await clock.advance(1)

    await cancel_first()
    assert first.cancelled()


async def test_a_timeout_cancels_its_scope_at_its_time() -> None:
    clock = FakeClock()
    ended: list[float] = []

    async def limited() -> None:
        try:
            async with clock.timeout(5):
                await asyncio.Event().wait()
        except TimeoutError:
            ended.append(clock.monotonic())

    task = asyncio.create_task(limited())
    await clock.advance(4.9)
    assert ended == []
    await clock.advance(0.2)
    assert ended == [5.0]
    await task


async def test_a_timeout_left_in_time_never_fires() -> None:
    clock = FakeClock()
    async with clock.timeout(5):
        pass
    await clock.advance(10)
    assert clock.sleepers == 0


async def test_a_timeout_of_nothing_is_over_at_once() -> None:
    with pytest.raises(TimeoutError):
        async with FakeClock().timeout(0):
            await asyncio.Event().wait()


async def test_the_time_of_day_moves_along() -> None:
    start = datetime(2030, 5, 1, tzinfo=UTC)
    clock = FakeClock(start)
    await clock.advance(90)
    assert clock.now() == start + timedelta(seconds=90)


async def test_the_system_clock_is_the_machines() -> None:
    clock: Clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(0)
    await clock.sleep(-1)
    assert clock.monotonic() >= before
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=60)
    with pytest.raises(TimeoutError):
        async with clock.timeout(0):
            await asyncio.Event().wait()
