"""An event loop in a thread of its own, for code that has none: scripts, notebooks, blocking faces.

The caller's own loop, a notebook's say, is not touched. Calls from several threads run side by side. No call outlives
the loop: who waits when it is closed is told so, and at the end of the interpreter nobody waits any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator

R = TypeVar("R")
END_SECONDS: Final = 5.0
"""How long calls that are cancelled by `close` may take to give back what they hold."""
_LOOK_SECONDS: Final = 0.5
"""Between two looks at whether the thread is still there, while a call waits."""


class LoopThread:
    """A loop that runs until `close`.

    A child made by fork cannot use its parent's loop and is told so: the thread that runs it stayed behind.
    """

    def __init__(self, owner: str) -> None:
        """Start the thread; `owner` is what messages call the object that cannot be used any more."""
        self.owner = owner
        self._process = os.getpid()
        self._closing = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._live, name="trainplane-loop", daemon=True)
        self._thread.start()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closing

    @property
    def inherited(self) -> bool:
        """Whether this is a child's copy of its parent's loop, made by fork: nobody runs it."""
        return os.getpid() != self._process

    @property
    def _is_ours(self) -> bool:
        """Whether this is the loop's own thread: it cannot wait for itself."""
        return threading.current_thread() is self._thread

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the loop and return its result.

        An interrupt (Ctrl-C) cancels it, and is raised when it has ended: what it held is given back by then.

        Raises:
            RuntimeError: the loop is closed, or was closed meanwhile; or nobody can wait for it here.
        """
        if problem := self._problem():
            work.close()
            raise RuntimeError(problem)
        tasks: list[asyncio.Task[R]] = []
        ended = threading.Event()

        def start() -> None:
            if self._closing or ended.is_set():
                work.close()
                ended.set()
                return
            tasks.append(self._loop.create_task(work))
            tasks[0].add_done_callback(lambda _: ended.set())

        def stop() -> None:
            if tasks:
                tasks[0].cancel()
            else:  # the interrupt came before the loop was told to start it
                work.close()
                ended.set()

        try:
            self._call_soon(start)
            self._wait(ended)
        except BaseException:
            with contextlib.suppress(RuntimeError):
                self._call_soon(stop)
                self._wait(ended)
            raise
        if not tasks or (self._closing and tasks[0].cancelled()):
            raise RuntimeError(self._problem() or f"this {self.owner} is closed")
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
            self._leave(source)

    def close(self, last: Coroutine[Any, Any, None] | None = None) -> None:
        """Cancel what runs, do `last`, end generators and the thread; closing twice does nothing.

        On the loop's own thread, where an object may be collected, all of that is begun and not waited for.
        """
        if self._closing or self.inherited or sys.is_finalizing():
            if last is not None:
                last.close()
            return
        self._closing = True
        self._loop.call_soon_threadsafe(self._begin_end, last)
        if not self._is_ours:
            self._thread.join()

    def _live(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _problem(self) -> str | None:
        """Return why no call can be made here and now."""
        if self.inherited:
            return f"this {self.owner} was made before a fork: make a new one in the child"
        if self._closing:
            return f"this {self.owner} is closed"
        if sys.is_finalizing():
            return f"this {self.owner} cannot be used any more: Python is ending"
        return f"this {self.owner} cannot be called from its own loop" if self._is_ours else None

    def _call_soon(self, what: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:
            raise RuntimeError(f"this {self.owner} is closed") from None

    def _wait(self, ended: threading.Event) -> None:
        """Wait for the end of a call, or of the thread that it was handed to: it may have ended just before."""
        while not ended.wait(_LOOK_SECONDS):
            if not self._thread.is_alive():
                raise RuntimeError(f"this {self.owner} is closed")

    def _leave(self, source: Any) -> None:
        """Close a generator, wherever that can be done."""
        if self._is_ours and not self._closing:
            self._loop.create_task(source.aclose())
        elif self._problem() is None:
            with contextlib.suppress(RuntimeError):  # it was closed meanwhile, and its generators with it
                self.run(source.aclose())

    def _begin_end(self, last: Coroutine[Any, Any, None] | None) -> None:
        self._ending = self._loop.create_task(self._end(last))
        self._ending.add_done_callback(lambda _: self._loop.stop())

    async def _end(self, last: Coroutine[Any, Any, None] | None) -> None:
        await _cancel_all()
        if last is not None:
            await asyncio.wait({asyncio.ensure_future(last)}, timeout=END_SECONDS)
        await self._loop.shutdown_asyncgens()
        await _cancel_all()


async def _cancel_all() -> None:
    """Cancel all tasks but this one, and let them give back what they hold."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=END_SECONDS)
