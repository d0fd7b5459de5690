"""An event loop whose time is virtual and whose order is drawn.

Nothing here waits: when nobody is ready, time jumps to the next timer. Of those that are ready at one moment, who runs
first is drawn from a seed, since no promise of ours may rest on it. No thread, no socket, no clock of the machine:
what runs on this loop, and draws what it draws from `entropy`, is a function of the seed.
"""

from __future__ import annotations

import asyncio
import heapq
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.simulation.process import whose

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from contextvars import Context
    from random import Random

START = datetime(2026, 1, 1, tzinfo=UTC)

MOST_STEPS = 2_000_000
"""Callbacks after which a history is taken to run in circles."""


class StuckError(Exception):
    """Nobody is ready and no timer is set, or callbacks follow each other without end."""


class _Cancellable:
    """What asyncio asks of a handle. Its own are made for debugging, and cost as much as the callbacks of a history."""

    __slots__ = ()
    _context: Context

    def cancel(self: Any) -> None:
        """Let it not run, and hold on to nothing meanwhile."""
        self._cancelled, self._callback, self._args = True, None, ()

    def cancelled(self: Any) -> bool:
        """Return whether it will not run."""
        return bool(self._cancelled)


class _Call(_Cancellable):
    """What is ready to run."""

    __slots__ = ("_args", "_callback", "_cancelled", "_context")


class _Timer(_Cancellable, float):
    """What is to run at a moment, which it is itself: a heap of numbers is kept without a line of Python."""

    __slots__ = ("_args", "_callback", "_cancelled", "_context")

    def when(self) -> float:
        """Return the moment."""
        return float(self)


class VirtualLoop(asyncio.BaseEventLoop):
    """See the module's docstring. `steps` counts the callbacks that ran: what a history costs, on any machine."""

    def __init__(self, random: Random, most_steps: int = MOST_STEPS) -> None:
        super().__init__()
        self._random = random
        self._most_steps = most_steps
        self._moment = 0.0
        self.steps = 0

    def time(self) -> float:
        """Return the virtual seconds since the beginning."""
        return self._moment

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]
        """Run something in the next round."""
        if self._closed:  # type: ignore[attr-defined]
            raise RuntimeError("Event loop is closed")
        call = _Call()
        call._callback, call._args, call._cancelled = callback, args, False
        call._context = copy_context() if context is None else context
        self._ready.append(call)  # type: ignore[attr-defined]
        return call

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> Any:
        """Run something after virtual seconds."""
        return self.call_at(self._moment + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> Any:
        """Run something at a virtual moment."""
        if self._closed:  # type: ignore[attr-defined]
            raise RuntimeError("Event loop is closed")
        timer = _Timer(when)
        timer._callback, timer._args, timer._cancelled = callback, args, False
        timer._context = copy_context() if context is None else context
        heapq.heappush(self._scheduled, timer)  # type: ignore[attr-defined]
        return timer

    def _run_once(self) -> None:
        ready: Any = self._ready  # type: ignore[attr-defined]
        timers: list[_Timer] = self._scheduled  # type: ignore[attr-defined]
        while timers and timers[0]._cancelled:
            heapq.heappop(timers)
        if not ready:
            if not timers:
                raise StuckError("nobody is ready and no timer is set")
            self._moment = max(self._moment, float(timers[0]))
        while timers and timers[0] <= self._moment:
            ready.append(heapq.heappop(timers))
        round_ = list(ready)
        ready.clear()
        if len(round_) > 1:
            self._random.shuffle(round_)
        self.steps += len(round_)
        if self.steps > self._most_steps:
            raise StuckError(f"{self._most_steps} callbacks and no end")
        self._run_all(round_)

    def _run_all(self, round_: list[Any]) -> None:
        for handle in round_:
            process = whose(handle)
            if process is not None and process.is_stopped:
                process.put_off(handle)
            elif not handle._cancelled:
                self._run(handle)

    def add_ready(self, handles: list[Any]) -> None:
        """Let callbacks run that were put off."""
        self._ready.extend(handles)  # type: ignore[attr-defined]

    def _run(self, handle: Any) -> None:
        try:
            handle._context.run(handle._callback, *handle._args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 as asyncio does
            self.call_exception_handler({"message": f"Exception in callback {handle._callback!r}", "exception": error})

    def _asyncgen_firstiter_hook(self, agen: object) -> None:
        """Keep no account of generators: whoever reads from one closes it, or is cancelled, when a loop is closed."""

    def _write_to_self(self) -> None:
        """Wake nobody: there is no selector to wake."""

    def _process_events(self, event_list: object) -> None:
        """Nothing: there are no files."""


class VirtualClock:
    """A `Clock` of one process on the loop's time; its time of day may be wrong by `skew` seconds."""

    def __init__(self, loop: VirtualLoop, skew: float = 0.0) -> None:
        self._loop = loop
        self.skew = skew

    def monotonic(self) -> float:
        """Return the loop's seconds."""
        return self._loop.time()

    def now(self) -> datetime:
        """Return the time of day that this process believes."""
        return START + timedelta(seconds=self._loop.time() + self.skew)

    async def sleep(self, seconds: float) -> None:
        """Wait on the loop."""
        await asyncio.sleep(max(0.0, seconds))

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """Return `asyncio.timeout`, which asks the loop for the time."""
        return asyncio.timeout(seconds)
