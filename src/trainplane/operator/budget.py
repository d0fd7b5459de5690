"""How long one piece of work may hold the event loop, in seconds of CPU.

Reviews and renderings are pure functions that run from start to end on the loop; while one runs, nobody else is served.
What they are given is bounded (`api.bounds`), and what they do takes a time in proportion, so none should ever come
near its budget. This is for what we did not think of, and for plugins of other packages: the work is broken off
wherever it is, and whoever asked for it is told.

A timer of the process's own CPU time does it, so a machine that is busy with others ends nothing. Python runs the
handler of a signal between two steps of the main thread, and an exception of the handler is raised there. So only
Python's steps can be broken off, not a single call into C; and only in the main thread, elsewhere nothing is timed.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, ClassVar, Final

from trainplane.operator.errors import BudgetError

if TYPE_CHECKING:
    from types import FrameType, TracebackType

SECONDS: Final = 2.0
"""Of CPU, for one review or rendering: several times what the worst that could be found takes, and a fifth of the time
after which an API server stops waiting for a review."""


class _SpentError(BaseException):
    """Breaks the work off. No error of the work's own, so that nobody there takes it for one and goes on."""


class Budget:
    """Bounds the work of a `with` block; `what` is the object that it is about. Blocks are not put into each other.

    Raises:
        BudgetError: from the block, when it took too long.
    """

    running: ClassVar[Budget | None] = None
    """The one whose block is being worked on."""

    def __init__(self, what: str, seconds: float = SECONDS) -> None:
        self._what = what
        self._seconds = seconds

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGPROF, _spent)
            Budget.running = self
            signal.setitimer(signal.ITIMER_PROF, self._seconds)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if Budget.running is self:
            Budget.running = None
            signal.setitimer(signal.ITIMER_PROF, 0)
        if kind is _SpentError:
            raise BudgetError(
                f"{self._what} takes more than {self._seconds:g} s of CPU to look at, and was given up: make it smaller"
            ) from None


def _spent(number: int, frame: FrameType | None) -> None:
    """Break the work off, unless it has just ended."""
    del number
    if Budget.running is not None and frame is not None and frame.f_globals is not globals():
        raise _SpentError
