"""How links break for a while: all that there are then, and those that are made meanwhile and know no better."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tests.simulation.loop import VirtualLoop
    from tests.simulation.wire import Link

    Links = Callable[[], Iterable[Link]]

HEALS = 60.0
"""Seconds after which nothing is left of most that was broken: a request was tried again, a watch was resumed."""


@contextlib.contextmanager
def severed(links: Links, still: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Cut links for the time of a block, and longer if something else still does."""
    for one in list(links()):
        one.is_cut = True
        one.cut()
    yield
    for one in links():
        one.is_cut = still()


async def hush(links: Links, seconds: float) -> None:
    """Let watches bring nothing for a while; those that there are then are silent for ever."""
    for one in links():
        one.is_silent = True
        for stream in one.streams:
            stream.silence()
    await asyncio.sleep(seconds)
    for one in links():
        one.is_silent = False


async def delay(links: Links, lag: float, seconds: float) -> None:
    """Let every event of a watch be late for a while."""
    for one in links():
        one.lag = lag
    await asyncio.sleep(seconds)
    for one in links():
        one.lag = 0.0


class Health:
    """Since when each cluster is cut off from somebody, and how long everything between them was well."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._cuts: dict[str, int] = {}
        self._ills: dict[str, int] = {}
        self._cut_since: dict[str, float] = {}
        self._healed: dict[str, float] = {}
        self._deaf_until: dict[str, float] = {}

    @contextlib.contextmanager
    def cut(self, name: str) -> Iterator[None]:
        """Note that a cluster cannot be reached within the block."""
        if not self._cuts.get(name):
            self._cut_since[name] = self._loop.time()
        self._cuts[name] = self._cuts.get(name, 0) + 1
        with self.ill(name):
            yield
        self._cuts[name] -= 1

    @contextlib.contextmanager
    def ill(self, name: str, heals: float = HEALS) -> Iterator[None]:
        """Note that something is wrong within the block, and for a while after it."""
        self._ills[name] = self._ills.get(name, 0) + 1
        yield
        self._ills[name] -= 1
        self._healed[name] = max(self._healed.get(name, 0.0), self._loop.time() + heals)

    @contextlib.contextmanager
    def deaf(self, name: str, noticed: float) -> Iterator[None]:
        """Note that watches that there are within the block bring nothing, until whoever reads them has noticed."""
        self._deaf_until[name] = float("inf")
        with self.ill(name, noticed):
            yield
        self._deaf_until[name] = self._loop.time() + noticed

    def is_deaf(self, name: str) -> bool:
        """Return whether watches of a cluster may be silent and nobody can know it yet."""
        return self._loop.time() < self._deaf_until.get(name, 0.0)

    def cut_for(self, name: str) -> float:
        """Return for how many seconds a cluster has been cut off; 0 if it is not."""
        return self._loop.time() - self._cut_since[name] if self._cuts.get(name) else 0.0

    def is_well(self, name: str) -> bool:
        """Return whether nothing has been wrong for long enough that nothing is left of it."""
        return not self._ills.get(name) and self._loop.time() >= self._healed.get(name, 0.0)
