"""A container's log on a fake API server, and one follower of it; a stage says what becomes of the lines."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tests.unit.hub.kubelet import SECOND, START
from tests.unit.kube.io.support import until
from trainplane.kube.logfollower import Follower, Sink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainplane.kube.testing.podlogs import ContainerLogs

PATIENCE = 60
"""Seconds for what must happen: for a bug, not for pacing."""
AnySink = TypeVar("AnySink", bound=Sink)


class Followed(Generic[AnySink]):
    """What is printed, and a follower while a test wants one."""

    def __init__(self, logs: ContainerLogs) -> None:
        self.logs = logs
        self.printed: list[bytes] = []
        self.is_whole = True

    def texts(self, run: int = 0) -> list[bytes]:
        """Return what is kept of a run."""
        raise NotImplementedError

    def follower(self, **others: Any) -> Follower[AnySink]:
        """Return a follower of the log."""
        raise NotImplementedError

    def print(self, count: int, *, every: int = SECOND // 20) -> None:
        for _ in range(count):
            text = f"line {len(self.printed)}".encode()
            self.logs.write(START + len(self.printed) * every, text)
            self.printed.append(text)

    @asynccontextmanager
    async def following(self, **others: Any) -> AsyncIterator[Follower[AnySink]]:
        follower = self.follower(**others)
        task = asyncio.create_task(follower.run())
        try:
            yield follower
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until_kept(self, run: int = 0) -> None:
        async with asyncio.timeout(PATIENCE):
            await until(lambda: len(self.texts(run)) >= len(self.printed))

    async def until_open(self, streams: int = 1) -> None:
        async with asyncio.timeout(PATIENCE):
            await until(lambda: self.logs.opened >= streams and self.logs.readers > 0)
