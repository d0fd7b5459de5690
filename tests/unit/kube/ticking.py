"""A clock for tests over real sockets: its time is counted in turns of the event loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from trainplane.kube.testing.clock import FakeClock

if TYPE_CHECKING:
    from typing import Self

STEP_SECONDS = 0.01
PAUSE_SECONDS = 0.001


class TickingClock(FakeClock):
    """Use `async with`. Runs by itself, up to ten times as fast as the machine's clock.

    However long the machine stalls, no more than one step passes, and between two steps the loop has turned many
    times: what sockets were about to bring is there before anybody's patience ends.
    """

    def __init__(self) -> None:
        super().__init__(settle_rounds=10)

    async def __aenter__(self) -> Self:
        self._ticking = asyncio.create_task(self._tick(), name="ticking clock")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ticking.cancel()
        with suppress(asyncio.CancelledError):
            await self._ticking

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(PAUSE_SECONDS)
            await self.advance(STEP_SECONDS)
