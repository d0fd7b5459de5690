"""A cache of many workers and ranks: the product's own roster, placement and order, on a made-up clock.

Workers join, end, come back, lose their disks or fall silent with their node; the head forgets; ranks stop at a
checkpoint and go on in another world. What is made up is only time and bytes: a second is a tick, a worker decodes some
fragments in each, a rank takes a block every few, and whoever asks a node that is gone waits for a call's deadline.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from trainplane.cache.blocks import Blocks
from trainplane.cache.fetching import shunned_for
from trainplane.cache.order import Order, remaining, share
from trainplane.cache.placement import REPLICAS, asked, holders
from trainplane.cache.roster import Roster
from trainplane.cache.wire import Hello

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.cache.manifest import Manifest
    from trainplane.cache.order import Span, Step

LONGEST = 5_000
"""Seconds after which a run is stuck."""
EVERY = 8
"""Seconds in which a rank uses up a block."""
HEARTBEAT = 3
DECODED = 4
"""Fragments that a worker decodes in a second."""
DEADLINE = 20
"""Seconds that a call to a node takes which is gone."""


@dataclass
class Node:
    """A worker."""

    name: str
    back: float = 0.0
    """When it lives again."""
    silent: bool = False
    """Its node is gone: nobody says so, calls end with their deadline."""
    held: set[int] = field(default_factory=set)
    wanted: set[int] = field(default_factory=set)
    loaded: int = 0
    served: int = 0


@dataclass
class _Rank:
    spans: list[Span]
    pieces: list[tuple[int, int]]
    """The fragment and the rows of each."""
    opened: tuple[str, ...] = ()
    shunned: dict[str, float] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    at: int = 0
    """Pieces that it has had."""
    free: float = 0.0
    """When it can ask again."""
    late: float = 0.0
    """Seconds that the present piece has been waited for."""


class Simulation:
    """One epoch."""

    def __init__(self, manifest: Manifest, workers: int, seed: int) -> None:
        self.manifest, self.chance = manifest, random.Random(seed)  # noqa: S311 no secret
        self._blocks = Blocks(manifest)
        self._order = Order(self._blocks, seed, 0)
        self._of = np.repeat(
            np.arange(len(manifest.fragments)), [len(self._blocks.of(n)) for n in range(len(manifest.fragments))]
        ).tolist()
        self.nodes = {f"cache-{number}": Node(f"cache-{number}") for number in range(workers)}
        self._expected = tuple(self.nodes)
        self._roster = Roster(manifest, expected=self._expected)
        self._serving: tuple[str, ...] = ()
        self.now = 0.0
        self.happened: Counter[str] = Counter()
        self.longest_wait = 0.0
        self.times = np.zeros(self._blocks.total, dtype=np.int32)
        """How often each position was delivered."""
        self._places: dict[tuple[str, ...], dict[str, set[int]]] = {}
        self._whom: dict[tuple[int, tuple[str, ...], tuple[str, ...]], tuple[str, ...]] = {}

    def fill(self) -> None:
        """Let time pass until everything is loaded twice, and the head has heard of it."""
        while not self.whole:
            self.tick([])
        for _ in range(HEARTBEAT):
            self.tick([])

    def go(self, worlds: list[int], happens: Callable[[Simulation], None]) -> None:
        """Let one world after another read, all but the last until some checkpoint."""
        steps: list[Step] = []
        for number, world in enumerate(worlds):
            last = number == len(worlds) - 1
            left = remaining([(0, self._blocks.total)], steps, "ragged")
            ranks = [self._rank(share(left, world, rank, "ragged")) for rank in range(world)]
            until = LONGEST if last else self.now + self.chance.randint(10, 60)
            while self.now < until and not all(rank.at == len(rank.pieces) for rank in ranks):
                happens(self)
                self.tick(ranks)
            steps.append((world, self._checkpoint(ranks, last=last)))

    @property
    def whole(self) -> bool:
        """Whether as many living workers hold each fragment as should."""
        copies = Counter(number for node in self.nodes.values() if self.lives(node) for number in node.held)
        return all(copies[number] >= REPLICAS for number in range(len(self.manifest.fragments)))

    @property
    def loaded(self) -> int:
        """Fragments that workers have decoded so far."""
        return sum(node.loaded for node in self.nodes.values())

    def lives(self, node: Node) -> bool:
        """Whether a worker runs."""
        return node.back <= self.now

    def lose(self, name: str) -> None:
        """Take a node away for good, in silence."""
        self.nodes[name].back, self.nodes[name].silent = float("inf"), True
        self.happened["lost"] += 1

    def end(self, node: Node, seconds: float, *, wiped: bool = False) -> None:
        """End a worker for some time."""
        node.back = self.now + seconds
        self.happened["killed"] += 1
        if wiped:
            node.held.clear()
            self.happened["wiped"] += 1

    def join(self) -> None:
        """Add a worker that has nothing yet."""
        name = f"cache-{len(self.nodes)}"
        self.nodes[name] = Node(name)
        self.happened["joined"] += 1

    def forget(self) -> None:
        """Let another head begin."""
        self._roster = Roster(self.manifest, expected=self._expected, now=self.now)
        self.happened["head"] += 1

    def tick(self, ranks: list[_Rank]) -> None:
        """Let a second pass."""
        self.now += 1
        assert self.now < LONGEST, f"stuck: {self.happened}"
        for number, node in enumerate(self.nodes.values()):
            if self.lives(node):
                if (self.now + number) % HEARTBEAT == 0:
                    self._hello(node)
                fresh = sorted(node.wanted - node.held)[:DECODED]
                node.held.update(fresh)
                node.loaded += len(fresh)
        # What the head answers whoever asks it within this second.
        self._serving = tuple(self._roster.living(self.now)) if self._roster.ready(self.now) else ()
        for number, rank in enumerate(ranks):
            if rank.at < len(rank.pieces) and (rank.late or (self.now + number) % EVERY == 0):
                self._take(rank)

    def _hello(self, node: Node) -> None:
        """Say what a worker holds, and learn what it should."""
        digests = {number: f"{number:064x}" for number in node.held}
        refused = self._roster.hear(Hello(node.name, "grpc://x:1", self.now, self.manifest.name, digests), self.now)
        assert not refused
        node.wanted = self._share_of(self._roster.members(self.now))[node.name]

    def _share_of(self, members: tuple[str, ...]) -> dict[str, set[int]]:
        if members not in self._places:
            owned: dict[str, set[int]] = {member: set() for member in members}
            for number, fragment in enumerate(self.manifest.fragments):
                for holder in holders(fragment.name, members):
                    owned[holder].add(number)
            self._places[members] = owned
        return self._places[members]

    def _take(self, rank: _Rank) -> None:
        """Try to take the next block; what goes wrong is time that a rank waits."""
        rank.late += 1
        self.longest_wait = max(self.longest_wait, rank.late - 1)
        if rank.free <= self.now and self._fetched(rank):
            rank.at += 1
            rank.late = 0.0

    def _fetched(self, rank: _Rank) -> bool:
        fragment = rank.pieces[rank.at][0]
        if not rank.opened:
            if not self._serving:
                self.happened["waited for the head"] += 1
                return False
            rank.opened = self._serving
        for worker in self._ranked(fragment, rank):
            node = self.nodes[worker]
            if self.lives(node) and fragment in node.held:
                node.served += 1
                rank.failures.pop(worker, None)
                return True
            rank.free = self.now + (DEADLINE if node.silent else 0)
            rank.failures[worker] += 1
            rank.shunned[worker] = rank.free + shunned_for(rank.failures[worker])
            self.happened["failover"] += 1
            if node.silent:
                return False
        rank.opened = ()
        return False

    def _ranked(self, fragment: int, rank: _Rank) -> tuple[str, ...]:
        """Return whom a rank asks; remembered, as it is the same for most ranks at most times."""
        shunned = tuple(sorted(worker for worker, until in rank.shunned.items() if until > self.now))
        key = fragment, rank.opened, shunned
        if key not in self._whom:
            name = self.manifest.fragments[fragment].name
            self._whom[key] = asked(name, rank.opened, REPLICAS, rank.shunned, self.now)
        return self._whom[key]

    def _rank(self, spans: list[Span]) -> _Rank:
        return _Rank(spans, [(self._of[one.block], one.stop - one.start) for one in self._order.pieces(spans)])

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
