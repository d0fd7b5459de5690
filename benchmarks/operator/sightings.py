"""When each of many objects was first seen as it is waited for, over a mirror that outlives its watches.

An API server ends a watch when it likes: after minutes, when it is busy, when it has forgotten where the watch stood.
That is no end of anybody's work. `kube.reflector` goes on where the watch ended, or lists again.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from trainplane.kube.projection import WHOLE, Projection
from trainplane.kube.reflector import Reflector
from trainplane.kube.store import Change, Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from trainplane.kube.client import Client
    from trainplane.kube.projection import Entry
    from trainplane.kube.resource import Resource


class Sightings:
    """Sees changes of a resource in a namespace within its `async with`.

    Args:
        client: reads them.
        resource: what is seen.
        namespace: where.
        subject: whom a state of an object is about; None if it is not what is waited for.
        projection: what of an object `subject` looks at.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        namespace: str,
        subject: Callable[[Entry], str | None],
        projection: Projection = WHOLE,
    ) -> None:
        self.times: dict[str, float] = {}
        """When each subject was first seen, on the monotonic clock."""
        self.changes = 0
        """Changes seen since the beginning, of what is waited for and of all else."""
        self._subject = subject
        self._news = asyncio.Event()
        self._mirror = Reflector(client, resource, Store(resource, projection), [self._see], namespace=namespace)
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self._mirror.run())
        await self._mirror.synced.wait()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})

    async def of(self, wanted: int, seconds: float) -> dict[str, float]:
        """Return when each was first seen, once that is so for `wanted` subjects; raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while len(self.times) < wanted:
                self._news.clear()
                await self._news.wait()
        return self.times

    def _see(self, change: Change) -> None:
        if change.new is None:
            return
        self.changes += 1
        subject = self._subject(change.new)
        if subject is not None and subject not in self.times:
            self.times[subject] = time.monotonic()
            self._news.set()
