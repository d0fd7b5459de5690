"""The log of one rank of a dispatched job, from the hub: kept there from its first line, through restarts of its pods.

The hub begins a log at most so many seconds ago, by its own clock. A resumed stream therefore asks for half a minute
more than it lacks, and drops what it has read. Where it does not join that, lines not newer than the last are dropped.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from trainplane.client.backends.kubernetes.podlog import BACKOFF, TRIES
from trainplane.client.backends.kubernetes.wanted import ALL
from trainplane.kube.containerlogs import Resumption, Splitter, nanoseconds
from trainplane.kube.errors import ForbiddenError, KubeError, NotFoundError, UnauthorizedError
from trainplane.kube.query import with_query

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.client.backends.kubernetes.merging import LogStream
    from trainplane.client.backends.kubernetes.wanted import Wanted
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock

_SECOND: Final = 1_000_000_000
MARGIN_SECONDS: Final = 30
"""Seconds by which clocks may differ."""
RECENT_SECONDS: Final = 4 * MARGIN_SECONDS
"""Seconds of lines that are remembered, to drop them where they come again."""


class _Read(NamedTuple):
    """One stream, after lines up to a time were read."""

    resumption: Resumption
    newest: int | None

    def new(self, lines: list[bytes]) -> list[bytes]:
        """Return those lines that were not read before."""
        new = self.resumption.feed(lines)
        if self.resumption.gap and self.newest is not None:
            return [line for line in new if (nanoseconds(line) or 0) > self.newest]
        return new


class RankLog:
    """Reads one rank into a source."""

    def __init__(
        self,
        client: Client,
        path: str,
        source: LogStream,
        clock: Clock,
        *,
        role: str,
        number: int,
        follow: bool,
        is_over: Callable[[], bool],
        wanted: Wanted = ALL,
    ) -> None:
        self._client = client
        self._path = path
        self._query = {"step": role, "rank": str(number), "timestamps": "true"}
        if wanted.previous:
            self._query["previous"] = "true"
        self._source = source
        self._clock = clock
        self._follow = follow
        self._is_over = is_over
        self._wanted = wanted
        self._recent: deque[bytes] = deque()
        self._newest: int | None = None
        self._random = Random()  # noqa: S311 jitter is no secret

    async def run(self) -> None:
        """Read until nothing more can come. Raises ForbiddenError and UnauthorizedError; without `follow`, all."""
        failures = 0
        try:
            while True:
                over = self._is_over()
                try:
                    await self._read(follow=self._follow and not over)
                    if over or not self._follow:
                        return
                    failures = 0
                except NotFoundError:
                    if over or not self._follow:
                        return  # nothing of the kind was ever printed
                    failures += 1
                except (ForbiddenError, UnauthorizedError):
                    raise
                except KubeError:
                    failures += 1
                    if not self._follow and failures >= TRIES:
                        raise
                await self._clock.sleep(BACKOFF.delay(failures + 1, self._random))
        finally:
            self._source.end()

    async def _read(self, *, follow: bool) -> None:
        query = dict(self._query)
        if follow:
            query["follow"] = "true"
        if self._newest is not None:
            behind = self._clock.now().timestamp() - self._newest / _SECOND
            query["sinceSeconds"] = str(max(0, int(behind)) + MARGIN_SECONDS)
        elif self._wanted.since is not None:
            behind = (self._clock.now() - self._wanted.since).total_seconds()
            query["sinceSeconds"] = str(max(0, int(behind)) + MARGIN_SECONDS)
        if self._newest is None and self._wanted.tail is not None:
            query["tailLines"] = str(self._wanted.tail)
        read = _Read(Resumption(self._recent), self._newest)
        splitter = Splitter()
        self._source.connect()
        async with self._client.transport.stream(with_query(self._path, query), accept="*/*") as chunks:
            async for chunk in chunks:
                self._source.connected()
                await self._take(read.new(splitter.feed(chunk)))
        if rest := splitter.rest():
            await self._take(read.new([rest]))

    async def _take(self, new: list[bytes]) -> None:
        if new:
            self._keep(new)
            await self._source.put(new)

    def _keep(self, lines: list[bytes]) -> None:
        for line in lines:
            self._newest = max(self._newest or 0, nanoseconds(line) or 0)
        self._recent.extend(lines)
        oldest = (self._newest or 0) - RECENT_SECONDS * _SECOND
        while self._recent and (nanoseconds(self._recent[0]) or 0) < oldest:
            self._recent.popleft()
