from __future__ import annotations

import asyncio
from random import Random

import pytest

from tests.unit.kube.loop.objects import seeded
from trainplane.kube.backoff import Backoff
from trainplane.kube.queue import BACKLOG_TURN, QueueClosed, WorkQueue
from trainplane.kube.testing.clock import FakeClock


class Top(Random):
    """Draws no jitter."""

    def random(self) -> float:
        return 0.0


def make(clock: FakeClock | None = None) -> WorkQueue[str]:
    return WorkQueue(clock or FakeClock(), backoff=Backoff(base=1, cap=8), random=Top())


async def take(queue: WorkQueue[str]) -> str:
    async with asyncio.timeout(60):
        key, _ = await queue.get()
    return key


async def take_all(queue: WorkQueue[str]) -> list[str]:
    keys = []
    while len(queue):
        keys.append(await take(queue))
        queue.done(keys[-1])
    return keys


async def test_keys_come_out_in_the_order_they_went_in() -> None:
    queue = make()
    for key in "abc":
        queue.add(key)
    assert len(queue) == 3
    assert await take_all(queue) == ["a", "b", "c"]


async def test_a_key_waits_at_most_once() -> None:
    queue = make()
    for key in "aab":
        queue.add(key)
    assert await take_all(queue) == ["a", "b"]


async def test_a_key_added_while_worked_on_waits_until_done() -> None:
    queue = make()
    queue.add("a")
    assert await take(queue) == "a"
    queue.add("a")
    assert len(queue) == 0
    assert queue.working == {"a"}
    queue.done("a")
    assert len(queue) == 1
    assert await take_all(queue) == ["a"]


async def test_a_waiting_worker_gets_the_next_key() -> None:
    queue = make()
    worker = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    assert (await worker)[0] == "a"


async def test_workers_are_served_one_key_each() -> None:
    queue = make()
    workers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    for key in "abc":
        queue.add(key)
    assert {key for key, _ in await asyncio.gather(*workers)} == {"a", "b", "c"}


async def test_a_key_is_not_lost_with_the_worker_that_was_woken_for_it() -> None:
    queue = make()
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert (await second)[0] == "a"
    assert first.cancelled()


async def test_a_cancelled_worker_is_not_woken() -> None:
    queue = make()
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    queue.add("a")
    assert (await second)[0] == "a"


async def test_the_wait_is_told() -> None:
    clock = FakeClock()
    queue = make(clock)
    queue.add("a")
    await clock.advance(3)
    assert await queue.get() == ("a", 3.0)


async def test_news_goes_before_the_backlog() -> None:
    queue = make()
    for number in range(100):
        queue.add(f"old-{number}", backlog=True)
    queue.add("fresh")
    assert await take(queue) == "fresh"


async def test_the_backlog_gets_its_turn_amid_endless_news() -> None:
    queue = make()
    for number in range(3):
        queue.add(f"old-{number}", backlog=True)
    taken = []
    for number in range(3 * BACKLOG_TURN):
        queue.add(f"fresh-{number}")
        taken.append(await take(queue))
        queue.done(taken[-1])
    positions = [place for place, key in enumerate(taken, 1) if key.startswith("old")]
    assert positions == [BACKLOG_TURN, 2 * BACKLOG_TURN, 3 * BACKLOG_TURN]


async def test_news_of_a_backlog_key_promotes_it_and_keeps_its_wait() -> None:
    clock = FakeClock()
    queue = make(clock)
    queue.add("x", backlog=True)
    queue.add("y", backlog=True)
    await clock.advance(2)
    queue.add("y")
    assert len(queue) == 2
    assert await queue.get() == ("y", 2.0)
    assert await take_all(queue) == ["x"]
    assert len(queue) == 0


async def test_backlog_does_not_demote_news() -> None:
    queue = make()
    queue.add("a", backlog=True)
    queue.add("b")
    queue.add("b", backlog=True)
    assert len(queue) == 2
    assert await take_all(queue) == ["b", "a"]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([True], ["news", "key"]),
        ([True, False], ["key", "news"]),
        ([False, True], ["key", "news"]),
    ],
)
async def test_the_lane_of_a_key_added_while_worked_on(calls: list[bool], expected: list[str]) -> None:
    queue = make()
    queue.add("key")
    await take(queue)
    for backlog in calls:
        queue.add("key", backlog=backlog)
    queue.done("key")
    queue.add("news")
    assert await take_all(queue) == expected


async def test_a_delayed_key_waits_for_its_time() -> None:
    clock = FakeClock()
    queue = make(clock)
    queue.add_after("a", 10)
    await clock.advance(9.9)
    assert (len(queue), queue.delayed) == (0, 1)
    await clock.advance(0.2)
    assert (len(queue), queue.delayed) == (1, 0)


async def test_no_delay_is_now() -> None:
    queue = make()
    queue.add_after("a", 0)
    assert await take_all(queue) == ["a"]


async def test_of_several_times_the_earliest_holds() -> None:
    clock = FakeClock()
    queue = make(clock)
    queue.add_after("a", 10)
    queue.add_after("a", 5)
    queue.add_after("a", 20)
    assert queue.delayed == 1
    await clock.advance(5)
    assert await take_all(queue) == ["a"]
    await clock.advance(100)
    assert len(queue) == 0, "the later times were given up"


async def test_an_earlier_key_is_not_held_up_by_a_later_one() -> None:
    clock = FakeClock()
    queue = make(clock)
    queue.add_after("late", 100)
    await clock.settle()
    queue.add_after("early", 1)
    await clock.advance(1)
    assert await take_all(queue) == ["early"]
    await clock.advance(99)
    assert await take_all(queue) == ["late"]


async def test_a_delayed_key_is_due_even_after_a_look_in_between() -> None:
    clock = FakeClock()
    queue = make(clock)
    queue.add_after("a", 10)
    queue.add("a")
    assert await take_all(queue) == ["a"]
    await clock.advance(10)
    assert await take_all(queue) == ["a"]


async def test_a_delayed_key_due_while_worked_on_waits_until_done() -> None:
    clock = FakeClock()
    queue = make(clock)
    queue.add_after("a", 1)
    queue.add("a")
    await take(queue)
    await clock.advance(2)
    assert len(queue) == 0
    queue.done("a")
    assert await take_all(queue) == ["a"]


async def test_failures_wait_longer_each_time_until_forgotten() -> None:
    queue = make()
    assert [queue.add_after_failure("a") for _ in range(5)] == [1, 2, 4, 8, 8]
    assert queue.failures("a") == 5
    assert queue.add_after_failure("b") == 1, "keys fail on their own"
    queue.forget("a")
    assert queue.failures("a") == 0
    assert queue.add_after_failure("a") == 1


async def test_a_failure_waits_at_least_as_long_as_asked() -> None:
    assert make().add_after_failure("a", at_least=30) == 30


async def test_jitter_is_drawn_from_the_given_randomness() -> None:
    first, second = (WorkQueue[str](FakeClock(), random=seeded(7)).add_after_failure("a") for _ in range(2))
    assert first == second


async def test_closing_lets_the_waiting_be_worked() -> None:
    queue = make()
    queue.add("a")
    queue.add_after("later", 1)
    queue.close()
    queue.add("b")
    queue.add_after("c", 1)
    assert queue.delayed == 0
    assert await take(queue) == "a"
    queue.done("a")
    with pytest.raises(QueueClosed):
        await queue.get()


async def test_closing_without_drain_drops_the_waiting() -> None:
    queue = make()
    queue.add("a")
    queue.add("b", backlog=True)
    queue.close(drain=False)
    with pytest.raises(QueueClosed):
        await queue.get()


async def test_closing_sends_idle_workers_home_and_stops_the_alarm() -> None:
    clock = FakeClock()
    queue = make(clock)
    queue.add_after("later", 1)
    workers = [asyncio.create_task(queue.get()) for _ in range(2)]
    await clock.settle()
    queue.close()
    results = await asyncio.gather(*workers, return_exceptions=True)
    assert all(isinstance(result, QueueClosed) for result in results)
    await clock.settle()
    assert clock.sleepers == 0


async def test_a_key_given_back_after_closing_does_not_wait_again() -> None:
    queue = make()
    queue.add("a")
    await take(queue)
    queue.add("a")
    queue.close()
    queue.done("a")
    assert len(queue) == 0


async def test_quiet_is_when_nothing_waits_and_nobody_works() -> None:
    queue = make()
    async with asyncio.timeout(60):
        await queue.quiet()
    queue.add("a")
    waiting = asyncio.create_task(queue.quiet())
    await asyncio.sleep(0)
    await take(queue)
    await asyncio.sleep(0)
    assert not waiting.done()
    queue.done("a")
    async with asyncio.timeout(60):
        await waiting


async def test_giving_back_what_was_not_taken_is_an_error() -> None:
    with pytest.raises(KeyError):
        make().done("a")
