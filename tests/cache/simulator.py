"""A cache of many workers and ranks: the product's own roster, placement and order, on a made-up clock.

Workers die, come back, lose their disks; the head forgets; ranks stop at a checkpoint and go on in another world. What
is made up is only time and bytes.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from trainplane.cache.blocks import Blocks
from trainplane.cache.fetching import SHUNNED
from trainplane.cache.order import Order, remaining, share
from trainplane.cache.placement import asked, holders
from trainplane.cache.roster import Roster
from trainplane.cache.wire import Hello

if TYPE_CHECKING:
    from trainplane.cache.manifest import Manifest
    from trainplane.cache.order import Span, Step

_LONGEST = 3_000
"""Seconds after which a run is stuck."""


@dataclass
class _Worker:
    name: str
    back: float = 0.0
    """When it lives again."""
    held: set[int] = field(default_factory=set)


@dataclass
class _Rank:
    spans: list[Span]
    opened: tuple[str, ...] = ()
    shunned: dict[str, float] = field(default_factory=dict)
    at: int = 0
    """Pieces that it has had."""
    pieces: list[tuple[int, int]] = field(default_factory=list)
    """The fragment and the rows of each."""


class Simulation:
    """One epoch."""

    def __init__(self, manifest: Manifest, workers: int, seed: int) -> None:
        self.manifest, self._chance = manifest, random.Random(seed)  # noqa: S311 no secret
        self._blocks = Blocks(manifest)
        self._order = Order(self._blocks, seed, 0)
        self._workers = {f"cache-{number}": _Worker(f"cache-{number}") for number in range(workers)}
        self._roster = Roster(manifest)
        self._serving: tuple[str, ...] = ()
        self.now = 0.0
        self.happened: Counter[str] = Counter()
        self.times = np.zeros(self._blocks.total, dtype=np.int32)
        """How often each position was delivered."""
        self._places: dict[tuple[str, ...], list[set[int]]] = {}

    def go(self, worlds: list[int], trouble: float) -> None:
        """Let one world after another read, all but the last until some checkpoint."""
        steps: list[Step] = []
        for number, world in enumerate(worlds):
            last = number == len(worlds) - 1
            left = remaining([(0, self._blocks.total)], steps, "ragged")
            ranks = [self._rank(share(left, world, rank, "ragged")) for rank in range(world)]
            until = _LONGEST if last else self.now + self._chance.randint(1, 12)
            while self.now < until and not all(rank.at == len(rank.pieces) for rank in ranks):
                self._tick(ranks, trouble)
                assert self.now < _LONGEST, f"stuck: {self.happened}"
            done = self._checkpoint(ranks, last=last)
            steps.append((world, done))

    def _tick(self, ranks: list[_Rank], trouble: float) -> None:
        self.now += 1
        self._disturb(trouble)
        for worker in self._workers.values():
            if worker.back <= self.now:
                self._hello(worker)
        # What the head answers whoever asks it within this second.
        self._serving = tuple(self._roster.living(self.now)) if self._roster.ready(self.now) else ()
        for rank in ranks:
            for _ in range(4):
                if rank.at < len(rank.pieces) and self._fetched(rank):
                    rank.at += 1

    def _disturb(self, trouble: float) -> None:
        for worker in self._workers.values():
            if worker.back <= self.now and self._chance.random() < trouble:
                worker.back = self.now + self._chance.choice((2, 20, 150))
                self.happened["killed"] += 1
                if self._chance.random() < 0.3:
                    worker.held.clear()
                    self.happened["wiped"] += 1
        if self._chance.random() < trouble:
            self._roster = Roster(self.manifest)
            self.happened["head"] += 1

    def _hello(self, worker: _Worker) -> None:
        """Say what a worker holds, and load a few of what it should."""
        digests = {number: f"{number:064x}" for number in worker.held}
        refused = self._roster.hear(Hello(worker.name, "grpc://x:1", self.now, self.manifest.name, digests), self.now)
        assert not refused
        mine = self._share_of(self._roster.members(self.now), worker.name) - worker.held
        worker.held |= set(sorted(mine)[:40])

    def _share_of(self, members: tuple[str, ...], name: str) -> set[int]:
        if members not in self._places:
            owned: dict[str, set[int]] = {member: set() for member in members}
            for number, fragment in enumerate(self.manifest.fragments):
                for holder in holders(fragment.name, members):
                    owned[holder].add(number)
            self._places[members] = [owned[member] for member in members]
        return self._places[members][members.index(name)]

    def _fetched(self, rank: _Rank) -> bool:
        fragment = rank.pieces[rank.at][0]
        if not rank.opened:
            if not self._serving:
                self.happened["waited for the head"] += 1
                return False
            rank.opened = self._serving
        name = self.manifest.fragments[fragment].name
        for worker in asked(name, rank.opened, 2, rank.shunned, self.now):
            one = self._workers[worker]
            if one.back <= self.now and fragment in one.held:
                return True
            rank.shunned[worker] = self.now + SHUNNED
            self.happened["failover"] += 1
        rank.opened = ()
        return False

    def _rank(self, spans: list[Span]) -> _Rank:
        pieces = [(self._blocks.fragment(one.block), one.stop - one.start) for one in self._order.pieces(spans)]
        return _Rank(spans, pieces=pieces)

    def _checkpoint(self, ranks: list[_Rank], *, last: bool) -> int:
        """Keep what all ranks have had, counted in rows; what some had beyond it is had again."""
        rows = [sum(count for _, count in rank.pieces[: rank.at]) for rank in ranks]
        done = min(rows) if not last else max(rows)
        for rank in ranks:
            left = done
            for start, stop in rank.spans:
                taken = min(left, stop - start)
                self.times[start : start + taken] += 1
                left -= taken
        return done
