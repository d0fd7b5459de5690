"""A process among those on one loop: whatever was begun within it, which can be stopped and go on.

As SIGSTOP and SIGCONT do: while it is stopped none of its callbacks run, its timers pass unheard, and what the network
brings lies in its buffers; then all of it happens at once. The clocks go on meanwhile, its monotonic one too.
"""

from __future__ import annotations

import asyncio
import contextvars
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.loop import VirtualLoop

_WHOSE: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)


class Process:
    """See the module's docstring."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._late: list[Any] = []
        self._goes_on = asyncio.Event()
        self._goes_on.set()
        self.stopped_at = float("inf")
        """When it was stopped, while it is."""
        self.context = contextvars.copy_context()
        """What its first task is begun in."""
        self.context.run(_WHOSE.set, self)

    @property
    def is_stopped(self) -> bool:
        """Whether nothing of it runs."""
        return not self._goes_on.is_set()

    def stop(self) -> None:
        """Let nothing of it run any more."""
        self._goes_on.clear()
        self.stopped_at = self._loop.time()

    def go_on(self) -> None:
        """Let all run that was to run meanwhile."""
        self._goes_on.set()
        self.stopped_at = float("inf")
        self._loop.add_ready(self._late)
        self._late = []

    async def answers(self) -> None:
        """Wait until it runs."""
        await self._goes_on.wait()

    def put_off(self, handle: Any) -> None:
        """Keep a callback until it goes on."""
        self._late.append(handle)


def whose(handle: Any) -> Process | None:
    """Return the process that a callback belongs to; None for the rest of the world."""
    found: Process | None = handle._context.get(_WHOSE)
    return found
