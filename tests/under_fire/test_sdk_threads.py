"""Threads of the SDK always end: `close` frees who waits, and an open iterator holds no process (runtime 9, sdk 14)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from trainplane.client.client import _close
from trainplane.kube.loopthread import LoopThread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

pytestmark = [
    pytest.mark.finding("runtime", 9, "threads of the SDK hung: in calls, at exit, on the loop's own thread"),
    pytest.mark.finding("hub-and-sdk", 14, "close() left other threads hanging for ever"),
]
PATIENCE = 30.0
"""Seconds after which a thread counts as hanging."""


async def for_ever() -> AsyncGenerator[int, None]:
    yield 1
    await asyncio.sleep(3600)


def blocked(call: Callable[[LoopThread], object]) -> tuple[LoopThread, threading.Thread, list[BaseException]]:
    """Return a loop, and a thread that waits in a call on it."""
    loop, raised = LoopThread("Client"), list[BaseException]()

    def work() -> None:
        try:
            call(loop)
        except BaseException as error:  # noqa: BLE001 whatever it is
            raised.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()

    async def see() -> None:
        while len(asyncio.all_tasks()) < 2:  # noqa: ASYNC110 it is another thread that begins
            await asyncio.sleep(0.001)

    loop.run(see())
    return loop, thread, raised


@pytest.mark.parametrize(
    "call", [lambda loop: loop.run(asyncio.sleep(3600)), lambda loop: list(loop.iterate(for_ever()))]
)
def test_close_frees_the_threads_that_wait(call: Callable[[LoopThread], object]) -> None:
    loop, thread, raised = blocked(call)
    loop.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert [str(error) for error in raised] == ["this Client is closed"]
    assert isinstance(raised[0], RuntimeError)


def test_what_a_call_held_is_given_back_before_the_last_word() -> None:
    order: list[str] = []

    async def hold() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)
            order.append("given back")

    async def last() -> None:
        order.append("last")

    loop, thread, _ = blocked(lambda loop: loop.run(hold()))
    loop.close(last())
    thread.join(PATIENCE)
    assert order == ["given back", "last"]


def test_calls_that_race_with_close_end() -> None:
    """Each of them returns, or is told; none waits for ever."""
    for _ in range(50):
        loop, ends = LoopThread("Client"), list[object]()

        def work(loop: LoopThread = loop, ends: list[object] = ends) -> None:
            try:
                while True:
                    loop.run(asyncio.sleep(0))
            except RuntimeError as error:
                ends.append(str(error))

        threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        loop.close()
        for thread in threads:
            thread.join(PATIENCE)
        assert ends == ["this Client is closed"] * 4


class Backend:
    """What a client closes."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    async def close(self) -> None:
        self.closed.set()


def test_a_client_that_is_collected_on_its_own_thread_closes() -> None:
    """The collector runs in whatever thread makes garbage, the loop's own too."""
    loop, client = LoopThread("TrainerClient"), Backend()
    anything: Any = client
    loop._loop.call_soon_threadsafe(lambda: _close(loop, anything))
    assert client.closed.wait(PATIENCE)
    loop._thread.join(PATIENCE)
    assert not loop._thread.is_alive()


def test_an_iterator_that_is_collected_on_the_loops_thread_closes() -> None:
    loop, ended = LoopThread("Client"), threading.Event()

    async def stream() -> AsyncGenerator[int, None]:
        try:
            yield 1
            yield 2
        finally:
            ended.set()

    lines = loop.iterate(stream())
    assert next(lines) == 1
    loop._loop.call_soon_threadsafe(lines.close)
    assert ended.wait(PATIENCE)
    loop.close()


LEFT_OPEN = """
import asyncio, sys, threading
from trainplane.kube.loopthread import LoopThread

async def for_ever():
    yield 1
    await asyncio.sleep(3600)

loop = LoopThread("Client")
lines = loop.iterate(for_ever())
print(next(lines), flush=True)
threading.Thread(target=lambda: list(loop.iterate(for_ever())), daemon=True).start()
"""


def test_an_iterator_that_is_left_open_does_not_hold_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEFT_OPEN], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout) == (0, "1\n")
