"""Lines of many sources in the order of time, as they come.

A line is given out when no source can still bring an earlier one. Of a source that has lines waiting that is certain:
within a source times only go forward (a line stamped earlier than the one before it counts as of the same moment). A
source that has none waiting may bring one in a moment, so others wait for it: a little while after the line came
(`hold_seconds`), longer while it is being connected, after the API server was away for instance (`patience_seconds`).
A merge that is `exact` waits for as long as a source is there; that is for logs that are read to where they are.

Memory is bounded: a source whose lines wait for others is not read any further.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections import deque
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from trainplane.client.reading.lines import read_line
from trainplane.kube.containerlogs import nanoseconds
from trainplane.kube.notifier import Notifier

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from trainplane.client.types.jobs import LogLine
    from trainplane.kube.clock import Clock


@dataclass(frozen=True)
class MergeSettings:
    """How long lines wait for earlier ones of other sources."""

    hold_seconds: float = 0.25
    """Seconds that a line waits for others: more than lines of one moment take longer on one way than on another."""
    patience_seconds: float = 3.0
    """Seconds that lines wait for a source that is being connected."""
    exact: bool = False
    """Whether lines wait for every source to its end."""
    waiting: int = 4096
    """Lines of a source that wait for others, after which the source waits too."""


class LogStream:
    """The lines of one step, as they come from one place."""

    def __init__(self, merger: Merger, step: str, number: int) -> None:
        self.step = step
        self.number = number
        self.ended = False
        self.lines: deque[tuple[int, float, bytes]] = deque()
        self.waits_until = 0.0
        self.drained = asyncio.Event()
        self._merger = merger
        self._newest = 0

    def connect(self) -> None:
        """Let others wait: lines may come that are long printed."""
        self._merger.expect(self, connecting=True)

    def connected(self) -> None:
        """Its lines come from now on."""
        self._merger.expect(self, connecting=False)

    async def put(self, lines: Iterable[bytes]) -> None:
        """Take lines in, in their order; waits while too many of them wait."""
        for line in lines:
            self._newest = max(self._newest, nanoseconds(line) or 0)
            self.lines.append((self._newest, self._merger.now(), line))
        self._merger.came(self)
        while len(self.lines) > self._merger.settings.waiting and not self.ended:
            self.drained.clear()
            await self.drained.wait()

    def end(self) -> None:
        """There will be no more lines; those that wait are given out."""
        self.ended = True
        self._merger.came(self)


class Merger:
    """See the module's docstring."""

    def __init__(self, clock: Clock, settings: MergeSettings | None = None) -> None:
        self._clock = clock
        self.settings = settings or MergeSettings()
        self._news = Notifier()
        self._heads: list[tuple[int, int, LogStream]] = []
        self._empty: dict[int, LogStream] = {}
        self._count = 0
        self._closed = False
        self._error: Exception | None = None

    def now(self) -> float:
        """Return the time by which lines come."""
        return self._clock.monotonic()

    def source(self, step: str) -> LogStream:
        """Return a new source; others wait for its first lines."""
        source = LogStream(self, step, self._count)
        self._count += 1
        self._empty[source.number] = source
        source.connect()
        return source

    def expect(self, source: LogStream, *, connecting: bool) -> None:
        """Let others wait for a source."""
        seconds = self.settings.patience_seconds if connecting else self.settings.hold_seconds
        source.waits_until = self.now() + seconds
        self._news.notify()

    def came(self, source: LogStream) -> None:
        """Take note of new lines or an end."""
        if source.lines and source.number in self._empty:
            heapq.heappush(self._heads, (source.lines[0][0], source.number, source))
        if source.lines or source.ended:
            self._empty.pop(source.number, None)
        self._news.notify()

    def close(self, error: Exception | None = None) -> None:
        """There will be no more sources: what waits is given out, then `error` is raised."""
        self._closed = True
        self._error = self._error or error
        self._news.notify()

    async def lines(self) -> AsyncGenerator[LogLine, None]:
        """Iterate over the lines until all sources have ended and `close` was called."""
        while True:
            news = self._news.next
            if self._error is not None:
                raise self._error
            if not self._heads:
                if self._closed and not self._empty:
                    return
                await news.wait()
            elif (seconds := self._seconds_left()) > 0:
                await self._wait(news, seconds)
            else:
                yield self._pop()

    def _seconds_left(self) -> float:
        """Return how long the first line still waits for sources that have none."""
        if not self._empty:
            return 0.0
        if self.settings.exact:
            return inf
        _, arrived, _ = self._heads[0][2].lines[0]
        expected = max(source.waits_until for source in self._empty.values())
        return max(expected, arrived + self.settings.hold_seconds) - self.now()

    def _pop(self) -> LogLine:
        _, number, source = heapq.heappop(self._heads)
        _, _, line = source.lines.popleft()
        if source.lines:
            heapq.heappush(self._heads, (source.lines[0][0], number, source))
        elif not source.ended:
            self._empty[number] = source
            source.waits_until = max(source.waits_until, self.now())
        if len(source.lines) <= self.settings.waiting // 2:
            source.drained.set()
        return read_line(source.step, line)

    async def _wait(self, news: asyncio.Event, seconds: float) -> None:
        if seconds == inf:
            await news.wait()
            return
        with contextlib.suppress(TimeoutError):
            async with self._clock.timeout(seconds):
                await news.wait()
