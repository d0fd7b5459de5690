"""The order of an epoch: blocks are permuted, then rows within each block; ranks take equal slices of it.

The permutation is made from seed and epoch alone. Which row stands at which position therefore does not depend on how
many ranks there are, and a cursor (how many rows every rank has had, under which world size) is enough to go on in
mid-epoch, also in another world.

Each slice of the loader's workers is taken before those of the ranks: worker 3 of every rank is then equally far, and
its cursor alone says what of its share is left in any world.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from trainplane.cache.blocks import Blocks

Span: TypeAlias = tuple[int, int]
"""Positions: from, and up to."""
Tail: TypeAlias = Literal["repeat", "drop", "ragged"]
"""What is done where rows cannot be shared out equally: the first few are given again at the end (all ranks end
together, no row is left out), the last few are left out, or some ranks have one more."""
Step: TypeAlias = tuple[int, int]
"""A world size, and how many rows each of its ranks has had."""


def shuffled(count: int, *key: int) -> NDArray[np.int64]:
    """Return a permutation of `range(count)`, the same for the same key on every machine and for ever.

    Philox's stream is one that numpy promises to keep, unlike what its generators make of it. Values are sorted with
    their index in the low bits: no ties, and several times faster than sorting indices.
    """
    digest = hashlib.blake2b(repr(key).encode(), digest_size=16).digest()
    low = np.uint64((1 << max(count - 1, 1).bit_length()) - 1)
    drawn = np.random.Philox(key=int.from_bytes(digest, "little")).random_raw(count)
    drawn = (drawn & ~low) | np.arange(count, dtype=np.uint64)
    drawn.sort()
    return (drawn & low).astype(np.int64)


@dataclass(frozen=True)
class Piece:
    """Some rows of one block, by their places in the block's own order."""

    block: int
    start: int
    stop: int


class Order:
    """Where each row stands in an epoch; without a seed as they lie in the source."""

    def __init__(self, blocks: Blocks, seed: int | None, epoch: int) -> None:
        self._seed, self._epoch = seed, epoch
        self.sequence = np.arange(blocks.count) if seed is None else shuffled(blocks.count, seed, epoch, -1)
        self._starts = np.concatenate([[0], np.cumsum(blocks.rows[self.sequence])])
        self.total = int(self._starts[-1])

    def pieces(self, spans: Sequence[Span]) -> Iterator[Piece]:
        """Yield the rows at some positions, block by block."""
        for start, stop in spans:
            at = int(np.searchsorted(self._starts, start, side="right")) - 1
            begin = int(self._starts[at])
            while begin < stop:
                end = int(self._starts[at + 1])
                yield Piece(int(self.sequence[at]), max(start, begin) - begin, min(stop, end) - begin)
                begin, at = end, at + 1

    def rows(self, block: int, count: int) -> NDArray[np.int64] | None:
        """Return which row of a block of so many stands at each of its places; None where they stay as they lie."""
        return None if self._seed is None else shuffled(count, self._seed, self._epoch, block)


def share(spans: Sequence[Span], parts: int, part: int, tail: Tail) -> list[Span]:
    """Return one of some equal slices of positions."""
    line = _Line(spans)
    start, stop = _cut(line.total, parts, part, tail)
    taken = line.within(start, stop)
    missing = (stop - start) - sum(end - begin for begin, end in taken)
    while missing > 0 and line.total:
        taken += line.within(0, missing)
        missing -= line.total
    return taken


def remaining(spans: Sequence[Span], steps: Sequence[Step], tail: Tail) -> list[Span]:
    """Return what is left of positions after all ranks of each world in turn have had so many rows."""
    left = list(spans)
    for world, done in steps:
        line = _Line(left)
        cuts = [_cut(line.total, world, rank, tail) for rank in range(world)]
        left = [span for start, stop in cuts for span in line.within(start + done, stop)]
        # What was to be dropped at the end may still be shared out in the next world.
        left += line.within(cuts[-1][1], line.total)
    return left


def _cut(total: int, parts: int, part: int, tail: Tail) -> Span:
    """Return from where to where a part goes, counted along all positions; past the end: from the beginning again."""
    if tail == "ragged":
        return part * total // parts, (part + 1) * total // parts
    each = total // parts if tail == "drop" else -(-total // parts)
    return part * each, (part + 1) * each


class _Line:
    """Positions one after the other, counted through."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = spans
        self._before = list(accumulate((stop - start for start, stop in spans), initial=0))
        self.total = self._before[-1]

    def within(self, start: int, stop: int) -> list[Span]:
        """Return the positions that are counted `start` to `stop`, as far as there are any."""
        taken: list[Span] = []
        at = bisect_right(self._before, start) - 1
        while at < len(self._spans) and self._before[at] < stop:
            begin, end = self._spans[at]
            before = self._before[at]
            low, high = begin + max(start - before, 0), min(begin + stop - before, end)
            if low < high:
                taken.append((low, high))
            at += 1
        return taken
