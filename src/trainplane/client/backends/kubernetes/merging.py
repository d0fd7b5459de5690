"""Lines of many sources in the order of time, as they come.

A line is given out when no source can still bring an earlier one. Of a source that has lines waiting, or has brought
one as late, that is certain: within a source times only go forward (a line stamped earlier than the one before it
counts as of the same moment). Of any other nothing is, for a stream does not say that it is quiet. So lines wait for
it, by what is known of it (`MergeSettings`): one that printed just now, or is being connected again after the API
server was away, is waited for until it speaks; one that is quiet, or stays away, holds nobody up for long. Lines of
ranks that print steadily come in exact order unless one is on its way for longer than those bounds; no line waits
longer.
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
    """Seconds that a line waits for a quiet source: more than one way for lines takes longer than another."""
    active_seconds: float = 3.0
    """Seconds after its last sign of life that lines wait for a source; for a new one, seconds until its first."""
    reconnect_seconds: float = 15.0
    """Seconds that a line waits for a source that was read before and is being connected again."""
    lost_seconds: float = 60.0
    """Seconds without a connection after which a source holds nobody up any more, until it is back."""
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
        self.drained = asyncio.Event()
        self.newest = 0
        """The time of its last line: it brings none from before."""
        self._merger = merger
        self._heard = merger.now()
        self._away_since: float | None = None
        self._was_read = False

    def connect(self) -> None:
        """It is being connected: lines may come that are long printed. Further tries do not let others wait longer."""
        if self._was_read and self._away_since is None:
            self._away_since = self._merger.now()
            self._merger.changed()

    def connected(self) -> None:
        """Its lines come from now on."""
        self._heard, self._away_since, self._was_read = self._merger.now(), None, True
        self._merger.changed()

    def waited_for(self, arrived: float) -> float:
        """Return until when a line that arrived at a time waits for this source, which has none."""
        settings = self._merger.settings
        if self._away_since is None:
            return max(self._heard + settings.active_seconds, arrived + settings.hold_seconds)
        return min(arrived + settings.reconnect_seconds, self._away_since + settings.lost_seconds)

    async def put(self, lines: Iterable[bytes]) -> None:
        """Take lines in, in their order; waits while too many of them wait."""
        self.connected()
        for line in lines:
            self.newest = max(self.newest, nanoseconds(line) or 0)
            self.lines.append((self.newest, self._merger.now(), line))
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
        self.changed()
        return source

    def changed(self) -> None:
        """Take note that lines wait for a source shorter or longer than before."""
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
        time, arrived, _ = self._heads[0][2].lines[0]
        behind = [source for source in self._empty.values() if source.newest < time]
        if not behind:
            return 0.0
        if self.settings.exact:
            return inf
        return max(source.waited_for(arrived) for source in behind) - self.now()

    def _pop(self) -> LogLine:
        _, number, source = heapq.heappop(self._heads)
        _, _, line = source.lines.popleft()
        if source.lines:
            heapq.heappush(self._heads, (source.lines[0][0], number, source))
        elif not source.ended:
            self._empty[number] = source
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
