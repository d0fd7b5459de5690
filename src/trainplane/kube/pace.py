"""Giving others a turn.

A coroutine that always finds something ready never lets the event loop go on: a buffer full of events, a queue full of
keys. Whoever loops over such a source keeps a `Pace`:

    if pace.is_due():
        await pace.rest()
"""

from __future__ import annotations

import asyncio
from time import perf_counter

SLICE_SECONDS = 0.005
"""Seconds of work in one go. Several reflectors and controllers in turn then stay far below a stall of 100 ms."""


class Pace:
    """Limits how long its users work in one go, together.

    On the machine's clock on purpose: this is about work done, not about time passing.
    """

    def __init__(self, slice_seconds: float = SLICE_SECONDS) -> None:
        self._slice = slice_seconds
        self._until = 0.0
        self._begins_anew = False

    def is_due(self) -> bool:
        """Whether the slice is used up."""
        return perf_counter() > self._until

    async def rest(self) -> None:
        """Let everything else that is ready run; all users then share a new slice, however many rested."""
        if not self._begins_anew:
            self._begins_anew = True
            asyncio.get_running_loop().call_soon(self._begin)
        await asyncio.sleep(0)

    def _begin(self) -> None:
        self._begins_anew = False
        self._until = perf_counter() + self._slice
