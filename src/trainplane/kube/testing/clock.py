"""A clock that moves only when told.

    clock = FakeClock()
    task = asyncio.create_task(thing_that_sleeps_an_hour(clock))
    await clock.advance(3600)

`advance` stops at every moment at which somebody wakes and lets the event loop settle there, so a sleeper that
sleeps again within the span is woken again at the right time, as on a real clock.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(order=True, slots=True)
class _Alarm:
    """Something to call at a moment; called off by removing what to call."""

    moment: float
    serial: int
    wake: Callable[[], object] | None = field(compare=False)


class FakeClock:
    """A `Clock` for tests.

    `settle_rounds` is how many passes of the event loop each wake-up gets; a chain of more awaits than that in one
    instant needs a larger number or a call of `settle`.
    """

    def __init__(self, start: datetime = START, *, settle_rounds: int = 25) -> None:
        self._start = start
        self._elapsed = 0.0
        self._settle_rounds = settle_rounds
        self._alarms: list[_Alarm] = []
        self._serial = itertools.count()

    def monotonic(self) -> float:
        """Return the seconds that tests have let pass."""
        return self._elapsed

    def now(self) -> datetime:
        """Return the start plus what tests have let pass."""
        return self._start + timedelta(seconds=self._elapsed)

    async def sleep(self, seconds: float) -> None:
        """Wait until a test has moved the clock so far."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        alarm = self._set(seconds, partial(_release, woken))
        try:
            await woken
        finally:
            alarm.wake = None

    @asynccontextmanager
    async def timeout(self, seconds: float) -> AsyncIterator[None]:
        """Cancel the scope when a test has moved the clock so far; it then raises `TimeoutError`."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(None if seconds > 0 else 0) as scope:
            alarm = self._set(seconds, lambda: None if scope.expired() else scope.reschedule(loop.time()))
            try:
                yield
            finally:
                alarm.wake = None

    @property
    def sleepers(self) -> int:
        """How many sleeps and timeouts are under way."""
        return sum(alarm.wake is not None for alarm in self._alarms)

    async def advance(self, seconds: float) -> None:
        """Let time pass, waking sleepers in the order of their times, earlier sleepers first at the same time."""
        await self.settle()
        target = self._elapsed + seconds
        while self._alarms and self._alarms[0].moment <= target:
            alarm = heapq.heappop(self._alarms)
            if alarm.wake is None:
                continue
            self._elapsed = max(self._elapsed, alarm.moment)
            alarm.wake()
            await self.settle()
        self._elapsed = target
        await self.settle()

    async def settle(self) -> None:
        """Let everything that is ready run, without moving time."""
        for _ in range(self._settle_rounds):
            await asyncio.sleep(0)

    def _set(self, seconds: float, wake: Callable[[], object]) -> _Alarm:
        alarm = _Alarm(self._elapsed + seconds, next(self._serial), wake)
        heapq.heappush(self._alarms, alarm)
        return alarm


def _release(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():  # cancelled in the same instant
        sleeper.set_result(None)
