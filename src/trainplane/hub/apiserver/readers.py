"""Who reads logs at the same time, and the threads that read for them.

A reader costs a connection, some hundred KB and its share of the threads for as long as it likes; so there is a limit
for each user, for each namespace (whose members can make users: service accounts) and for all. Files are read and lines
cut in threads, a bounded step at a time: a step of one reader waits for at most one step of each other, and none of
them holds the event loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from trainplane.hub.errors import TooManyReadersError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """How many may read at the same time."""

    user: int = 16
    """Logs that one user reads at once: all ranks of a job are one, so this is many jobs side by side. An identity that
    reads for many people, as a dashboard does, may need more."""
    namespace: int = 64
    """Logs of one namespace that are read at once, by whoever: a quarter of all, so that no team shuts out others by
    making users."""
    total: int = 256
    """Logs that are read at once, by all: at up to some 0.3 MB each, under 100 MB."""
    threads: int = 4
    """Threads that read files. They wait for disks more than they compute, and share one core with the event loop."""


class Readers:
    """Lets readers in, and does their reading. `close` ends the threads."""

    def __init__(self, settings: ReaderSettings | None = None) -> None:
        self._settings = settings or ReaderSettings()
        self._users: Counter[str] = Counter()
        self._namespaces: Counter[str] = Counter()
        self._threads = ThreadPoolExecutor(self._settings.threads, thread_name_prefix="logs")

    @property
    def count(self) -> int:
        """How many logs are being read."""
        return self._users.total()

    def close(self) -> None:
        """End the threads when their present step is done."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    @contextmanager
    def admit(self, user: str, namespace: str) -> Iterator[None]:
        """Let somebody read for the time of the context; raises TooManyReadersError."""
        limits = self._settings
        if self._users[user] >= limits.user:
            raise TooManyReadersError(
                f'user "{user}" reads {limits.user} logs already, as many as one user may at once: end one of them, or '
                "have the limit raised (--readers-per-user of the hub's server)"
            )
        if self._namespaces[namespace] >= limits.namespace:
            raise TooManyReadersError(
                f'{limits.namespace} logs of namespace "{namespace}" are being read already, as many as there may be '
                "at once: end one of them, or have the limit raised (--readers-per-namespace of the hub's server)"
            )
        if self._users.total() >= limits.total:
            raise TooManyReadersError(
                f"{limits.total} logs are being read already, as many as there may be at once: try again in a moment, "
                "or have the limit raised (--readers of the hub's server)"
            )
        self._users[user] += 1
        self._namespaces[namespace] += 1
        try:
            yield
        finally:
            for counter, key in ((self._users, user), (self._namespaces, namespace)):
                counter[key] -= 1
                if not counter[key]:
                    del counter[key]

    async def step(self, function: Callable[[], T]) -> T:
        """Run a short function in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    async def each(self, chunks: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
        """Iterate over chunks that are made in a thread, each when it is wanted; empty ones only let others run."""
        while (chunk := await self.step(lambda: next(chunks, None))) is not None:
            if chunk:
                yield chunk
