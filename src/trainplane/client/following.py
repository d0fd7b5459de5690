"""A TrainJob from now to its end: how it gets on and what its steps print, in one stream."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, TypeAlias

from trainplane.client.errors import TrainplaneError
from trainplane.client.types.jobs import FINISHED, LogLine, TrainJob

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trainplane.client.backends.backend import Backend

News: TypeAlias = TrainJob | LogLine | TrainplaneError
"""A change, a line, or why there will be no more lines."""
MOST_NEWS: Final = 1024
"""Read and not yet taken: whoever takes slowly slows the reading, and no more is kept."""
LAST_SECONDS: Final = 30.0
"""For the last lines of a TrainJob that is over or gone."""


async def follow(backend: Backend, name: str) -> AsyncGenerator[News, None]:
    """Yield each change of a TrainJob and each line of its steps; the last change comes behind the last line.

    Ends when the TrainJob has finished or is deleted. Lines that cannot be read are told once, as the error that says
    why, and the changes go on: who may not read pods still sees how a TrainJob gets on.

    Raises:
        TrainplaneError: the TrainJob cannot be read.
    """
    following = _Following(backend, name)
    work = asyncio.create_task(following.run())
    work.add_done_callback(lambda _: following.news.put_nowait(None))
    try:
        while (one := await following.news.get()) is not None:
            following.room.release()
            yield one
        await work
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


class _Following:
    """Reads changes and lines side by side."""

    def __init__(self, backend: Backend, name: str) -> None:
        self._backend = backend
        self._name = name
        self.news: asyncio.Queue[News | None] = asyncio.Queue()
        self.room = asyncio.Semaphore(MOST_NEWS)

    async def run(self) -> None:
        """Tell all news until the TrainJob is over or gone."""
        lines = asyncio.create_task(self._lines())
        try:
            last = await self._changes()
            await asyncio.wait([lines], timeout=LAST_SECONDS)
            if last is not None:
                await self._tell(last)
        finally:
            lines.cancel()
            await asyncio.gather(lines, return_exceptions=True)

    async def _tell(self, one: News) -> None:
        await self.room.acquire()
        self.news.put_nowait(one)

    async def _changes(self) -> TrainJob | None:
        """Tell changes until the TrainJob is gone, or over: then it is returned."""
        async with aclosing(self._backend.watch_job(self._name)) as changes:
            async for job in changes:
                if job.status in FINISHED:
                    return job
                await self._tell(job)
        return None

    async def _lines(self) -> None:
        try:
            async with aclosing(self._backend.read_logs(self._name, None, follow=True)) as lines:
                async for line in lines:
                    await self._tell(line)
        except TrainplaneError as error:
            await self._tell(error)
