"""Where a training stands when it gets on no more: the stacks of its threads, in its own log.

Each report, of every rank, sets a timer of the interpreter (`faulthandler`) anew. A rank that does not come back in
time has its stacks printed once, by a thread that needs no lock of the interpreter, also where native code waits for
ever; `explain` reads them. How long is long is set by the training's own pace, as `explain` does it.

Nothing is printed outside a TrainJob. This file is shipped like `reporting`: the standard library, and Python 3.8.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import time
from typing import TYPE_CHECKING, Final

from trainplane.api import names

if TYPE_CHECKING:
    from collections.abc import Callable

SHORTEST: Final = 60.0
"""Seconds: no shorter silence is one. TRAINPLANE_STALL_SECONDS sets another, and 0 turns this off."""
TIMES: Final = 10
"""How many times the longest gap between two reports so far a silence must last."""
GAPS: Final = 5
"""Gaps that make a pace; before, ten times the shortest silence is waited: first steps compile."""
AGAIN: Final = 1.0
"""Seconds between two settings of the timer, which costs a tenth of a millisecond."""


class Timer:
    """The interpreter's one timer; it is away while a process forks: the child would wait for its thread for ever."""

    def __init__(self) -> None:
        self._seconds: float | None = None
        self._is_hooked = False

    def set(self, seconds: float) -> None:
        """Have the stacks printed after so many seconds."""
        if not self._is_hooked and hasattr(os, "register_at_fork"):
            self._is_hooked = True
            os.register_at_fork(before=faulthandler.cancel_dump_traceback_later, after_in_parent=self._set_again)
        self._seconds = seconds
        faulthandler.dump_traceback_later(seconds)

    def cancel(self) -> None:
        """Have nothing printed."""
        self._seconds = None
        faulthandler.cancel_dump_traceback_later()

    def _set_again(self) -> None:
        if self._seconds is not None:
            with contextlib.suppress(Exception):
                faulthandler.dump_traceback_later(self._seconds)


class Watch:
    """Sets the timer as a training gets on."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, timer: Timer | None = None) -> None:
        self._clock, self._timer = clock, timer or Timer()
        self._last: float | None = None
        self._set_at: float | None = None
        self._longest = 0.0
        self._gaps = 0

    def came(self, *, is_last: bool = False) -> None:
        """Take in that the training got on; `is_last`: it is done, and what comes after it has a pace of its own."""
        shortest = _shortest()
        if shortest <= 0:
            return
        now = self._clock()
        if self._last is not None:
            self._longest = max(self._longest, now - self._last)
            self._gaps += 1
        self._last = now
        if is_last:
            self._timer.cancel()
            self._set_at = None
        elif self._set_at is None or now >= self._set_at + AGAIN or self._gaps == GAPS:
            self._set_at = now
            usual = self._longest if self._gaps >= GAPS else max(shortest, self._longest)
            self._timer.set(max(shortest, TIMES * usual))


def _shortest() -> float:
    """Return the shortest silence that is one; 0 where none is."""
    if not (os.environ.get(names.STATUS_URL) or os.environ.get(names.STATUS_FILE)):
        return 0.0
    try:
        return float(os.environ.get(names.STALL_SECONDS) or SHORTEST)
    except ValueError:
        return SHORTEST
