"""The arithmetic of fragments, blocks and rows.

Blocks are numbered through the dataset, fragment by fragment; each has `block_rows` rows, only the last of a fragment
may have fewer. So a block's number says where it lies, and nothing has to be looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from trainplane.cache.manifest import Manifest


class Blocks:
    """The blocks of a manifest."""

    def __init__(self, manifest: Manifest) -> None:
        rows = np.array([fragment.rows for fragment in manifest.fragments], dtype=np.int64)
        self._size = manifest.block_rows
        counts = -(-rows // self._size)
        self._first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self._row = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
        self.count = int(self._first[-1])
        self.total = int(self._row[-1])
        """Rows of the dataset."""

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows of each block."""
        fragments = np.repeat(np.arange(len(self._first) - 1), np.diff(self._first))
        left = np.diff(self._row)[fragments] - (np.arange(self.count) - self._first[fragments]) * self._size
        rows: NDArray[np.int64] = np.minimum(left, self._size)
        return rows

    def fragment(self, block: int) -> int:
        """Return the number of the fragment that a block is of."""
        return int(np.searchsorted(self._first, block, side="right")) - 1

    def within(self, block: int) -> int:
        """Return a block's number within its fragment."""
        return block - int(self._first[self.fragment(block)])

    def of(self, fragment: int) -> range:
        """Return the blocks of a fragment."""
        return range(int(self._first[fragment]), int(self._first[fragment + 1]))

    def span(self, block: int) -> tuple[int, int]:
        """Return a block's rows, numbered through the dataset: from, and up to."""
        fragment = self.fragment(block)
        start = int(self._row[fragment]) + (block - int(self._first[fragment])) * self._size
        return start, min(start + self._size, int(self._row[fragment + 1]))

    def fragment_span(self, fragment: int) -> tuple[int, int]:
        """Return a fragment's rows, numbered through the dataset: from, and up to."""
        return int(self._row[fragment]), int(self._row[fragment + 1])

    def covering(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Yield the blocks that rows lie in, each with which of its own rows are meant: from, and up to."""
        while start < stop:
            fragment = int(np.searchsorted(self._row, start, side="right")) - 1
            within = start - int(self._row[fragment])
            block = int(self._first[fragment]) + within // self._size
            begin, end = self.span(block)
            yield block, start - begin, min(stop, end) - begin
            start = end
