from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainplane.kube.limiter import Limiter, LimiterSettings


async def test_no_more_than_the_limit_are_in_flight_and_the_first_to_wait_is_the_first_to_go() -> None:
    limiter = Limiter(LimiterSettings(initial=2, most=2))
    order: list[int] = []
    most = 0

    async def work(number: int) -> None:
        nonlocal most
        ticket = await limiter.acquire()
        order.append(number)
        most = max(most, limiter.in_flight)
        await asyncio.sleep(0)
        limiter.release(ticket)

    await asyncio.gather(*(work(number) for number in range(20)))
    assert order == list(range(20))
    assert most == 2
    assert limiter.in_flight == 0


async def test_success_at_the_limit_raises_it_by_one_per_round_and_idleness_does_not() -> None:
    limiter = Limiter(LimiterSettings(initial=4, most=100))
    for _ in range(50):
        limiter.release(await limiter.acquire())
    assert limiter.limit == 4.0, "one request at a time proves nothing about four"
    tickets = [await limiter.acquire() for _ in range(4)]
    for ticket in tickets:
        limiter.release(ticket)
        await limiter.acquire()
    assert limiter.limit == pytest.approx(5.0, abs=0.2)


async def test_one_burst_of_push_back_counts_once() -> None:
    limiter = Limiter(LimiterSettings(initial=10, decrease=0.5))
    tickets = [await limiter.acquire() for _ in range(10)]
    for ticket in tickets:
        limiter.release(ticket, pushed_back=True)
    assert limiter.limit == 5.0
    limiter.release(await limiter.acquire(), pushed_back=True)
    assert limiter.limit == 2.5


async def test_the_limit_keeps_its_bounds() -> None:
    limiter = Limiter(LimiterSettings(initial=2, least=1, most=3))
    for _ in range(50):
        limiter.release(await limiter.acquire(), pushed_back=True)
    assert limiter.limit == 1.0
    for _ in range(50):
        limiter.release(await limiter.acquire())
    tickets = [await limiter.acquire() for _ in range(int(limiter.limit))]
    for _ in range(100):
        limiter.release(tickets.pop())
        tickets.append(await limiter.acquire())
    assert limiter.limit <= 3.0


async def test_a_waiter_that_is_cancelled_gives_its_turn_away() -> None:
    limiter = Limiter(LimiterSettings(initial=1, most=1))
    ticket = await limiter.acquire()
    first, second = asyncio.create_task(limiter.acquire()), asyncio.create_task(limiter.acquire())
    await asyncio.sleep(0)
    first.cancel()
    limiter.release(ticket)
    limiter.release(await second)
    assert limiter.in_flight == 0


async def test_a_waiter_cancelled_after_its_turn_came_passes_it_on() -> None:
    limiter = Limiter(LimiterSettings(initial=1, most=1))
    ticket = await limiter.acquire()
    first, second = asyncio.create_task(limiter.acquire()), asyncio.create_task(limiter.acquire())
    await asyncio.sleep(0)
    limiter.release(ticket)
    first.cancel()
    limiter.release(await second)
    with pytest.raises(asyncio.CancelledError):
        await first
    assert limiter.in_flight == 0


@settings(deadline=None)
@given(steps=st.lists(st.sampled_from(["start", "ok", "refused", "cancel"]), max_size=80))
def test_places_are_never_lost_whatever_happens(steps: list[str]) -> None:
    async def run() -> None:
        limiter = Limiter(LimiterSettings(initial=3, most=5))
        tasks: list[asyncio.Task[int]] = []
        for step in steps:
            if step == "start":
                tasks.append(asyncio.create_task(limiter.acquire()))
            elif step == "cancel":
                if tasks and not tasks[-1].done():
                    tasks.pop().cancel()
            elif done := [task for task in tasks if task.done()]:
                tasks.remove(done[0])
                limiter.release(done[0].result(), pushed_back=step == "refused")
            await asyncio.sleep(0)
            assert limiter.in_flight == sum(task.done() for task in tasks)
        while tasks:
            done = [task for task in tasks if task.done()]
            assert done, "somebody waits for a place although all are free"
            tasks.remove(done[0])
            limiter.release(done[0].result())
            await asyncio.sleep(0)
        assert limiter.in_flight == 0

    asyncio.run(run())
