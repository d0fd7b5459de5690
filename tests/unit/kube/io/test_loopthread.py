"""A loop in a thread of its own, used from threads that have none."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.unit.interrupts import interrupt, main_waits
from trainplane.kube.loopthread import LoopThread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    made = LoopThread("client")
    yield made
    made.close()


async def doubled(number: int) -> int:
    await asyncio.sleep(0)
    return number * 2


def test_a_result_and_an_error_come_back(thread: LoopThread) -> None:
    assert thread.run(doubled(2)) == 4
    with pytest.raises(TypeError):
        thread.run(doubled(None))  # type: ignore[arg-type]


async def test_it_works_where_a_loop_is_running_already(thread: LoopThread) -> None:
    assert thread.run(doubled(1)) == 2


def test_threads_share_it(thread: LoopThread) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda number: thread.run(doubled(number)), range(40))) == 1560


def test_an_iterator_that_is_closed_closes_its_generator(thread: LoopThread) -> None:
    told: list[str] = []

    async def count() -> AsyncGenerator[int, None]:
        try:
            for number in range(9):
                yield number
        finally:
            told.append("closed")

    numbers = thread.iterate(count())
    assert [next(numbers) for _ in range(2)] == [0, 1]
    numbers.close()
    assert told == ["closed"]
    assert list(thread.iterate(count())) == list(range(9))


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_cancels_the_call_and_waits_for_its_end(thread: LoopThread) -> None:
    told: list[str] = []

    async def hang() -> None:
        told.append("begun")
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            told.append("ended")

    def press() -> None:
        while not told or not main_waits():
            time.sleep(0.001)
        interrupt()

    person = threading.Thread(target=press)
    person.start()
    with pytest.raises(KeyboardInterrupt):
        thread.run(hang())
    person.join()
    assert told == ["begun", "ended"]


@pytest.mark.parametrize("told", [False, True])
def test_an_interrupt_at_the_very_start_leaves_nothing_running(told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    thread, runs = LoopThread("client"), list[str]()
    tell = thread._loop.call_soon_threadsafe

    def interrupted(work: Callable[[], None]) -> None:
        monkeypatch.setattr(thread._loop, "call_soon_threadsafe", tell)
        if told:
            tell(work)
        raise KeyboardInterrupt

    async def stream() -> AsyncGenerator[int, None]:
        runs.append("begun")
        try:
            yield await asyncio.sleep(60, 1)
        finally:
            runs.append("ended")

    monkeypatch.setattr(thread._loop, "call_soon_threadsafe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(thread.iterate(stream()))
    thread.close()
    assert runs in ([], ["begun", "ended"])


def test_a_closed_one_says_so_and_closes_twice() -> None:
    before = set(threading.enumerate())
    thread = LoopThread("client")
    assert set(threading.enumerate()) - before
    thread.close()
    thread.close()
    with pytest.raises(RuntimeError, match="this client is closed"):
        thread.run(doubled(1))
    assert not set(threading.enumerate()) - before


def test_a_forked_child_is_told_to_make_its_own(thread: LoopThread, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: -1)
        with pytest.raises(RuntimeError, match="before a fork"):
            thread.run(doubled(1))
