"""An event loop in a thread of its own, for code that has none: scripts, notebooks, blocking faces.

The caller's own loop, a notebook's say, is not touched. Calls from several threads run side by side.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Generator

R = TypeVar("R")


class LoopThread:
    """A loop that runs until `close`.

    A child made by fork cannot use its parent's loop and is told so: the thread that runs it stayed behind.
    """

    def __init__(self, owner: str) -> None:
        """Start the thread; `owner` is what messages call the object that cannot be used any more."""
        self.owner = owner
        self._process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="trainplane-loop", daemon=True)
        self._thread.start()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._loop.is_closed()

    @property
    def inherited(self) -> bool:
        """Whether this is a child's copy of its parent's loop, made by fork: nobody runs it."""
        return os.getpid() != self._process

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the loop and return its result.

        An interrupt (Ctrl-C) cancels it, and is raised when it has ended: what it held is given back by then.
        """
        if self.inherited:
            work.close()
            raise RuntimeError(f"this {self.owner} was made before a fork: make a new one in the child")
        if self._loop.is_closed():
            work.close()
            raise RuntimeError(f"this {self.owner} is closed")
        tasks: list[asyncio.Task[R]] = []
        ended = threading.Event()

        def start() -> None:
            tasks.append(self._loop.create_task(work))
            tasks[0].add_done_callback(lambda _: ended.set())

        def stop() -> None:
            if tasks:
                tasks[0].cancel()
            else:  # the interrupt came before the loop was told to start it
                work.close()
                ended.set()

        try:
            self._loop.call_soon_threadsafe(start)
            ended.wait()
        except BaseException:
            self._loop.call_soon_threadsafe(stop)
            ended.wait()
            raise
        return tasks[0].result()

    def iterate(self, stream: AsyncGenerator[R, None]) -> Generator[R, None, None]:
        """Iterate over an asynchronous generator; closing the iterator closes it."""
        source: Any = stream
        try:
            while True:
                try:
                    item = self.run(anext(source))
                except StopAsyncIteration:
                    return
                yield item
        finally:
            if not self.closed and not self.inherited:
                self.run(source.aclose())

    def close(self) -> None:
        """End generators and the thread; closing twice does nothing."""
        if self._loop.is_closed():
            return
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
