"""Time as a dependency.

Whatever waits in this room asks a `Clock`, so that tests run hours in milliseconds and without flakes
(`trainplane.kube.testing.clock.FakeClock`). Durations are measured on `monotonic`, which never goes back;
`now` is only for timestamps that other people read.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager


class Clock(Protocol):
    """What the runtime may ask of time."""

    def monotonic(self) -> float:
        """Return seconds since some fixed moment; never goes back."""
        ...

    def now(self) -> datetime:
        """Return the time of day, in UTC."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; zero or less only lets others run."""
        ...

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """Return a scope that is cancelled after so many seconds and then raises `TimeoutError`."""
        ...


class SystemClock:
    """The machine's own clock."""

    def monotonic(self) -> float:
        """Return the machine's monotonic seconds."""
        return time.monotonic()

    def now(self) -> datetime:
        """Return the machine's time of day, in UTC."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait on the event loop."""
        await asyncio.sleep(max(0.0, seconds))

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """Return `asyncio.timeout`."""
        return asyncio.timeout(seconds)
