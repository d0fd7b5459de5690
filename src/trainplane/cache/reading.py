"""Batches of an epoch in their order, for any framework: Arrow record batches, or columns as numpy arrays.

```python
with Reading.open("HOST:50051", rank=0, world=8, seed=42) as reading:
    for batch in reading.batches(1024):     # pyarrow.RecordBatch, one epoch of this rank's rows
        ...
    reading.state_dict()                    # resumes here, also in another world
```
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
import pyarrow as pa
from msgspec import Meta

from trainplane.cache.blocks import Blocks
from trainplane.cache.errors import InvalidError
from trainplane.cache.fetching import Counts, Fetcher, patiently
from trainplane.cache.known import known
from trainplane.cache.manifest import Count  # noqa: TC001 msgspec reads it
from trainplane.cache.opening import Access, HeadLine
from trainplane.cache.order import Order, Tail, remaining, share

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self

    from trainplane.cache.manifest import Manifest
    from trainplane.cache.order import Piece, Span, Step


Number: TypeAlias = Annotated[int, Meta(ge=1, le=1 << 20)]


class Cursor(msgspec.Struct, frozen=True):
    """Where reading stands. The same for all ranks, so that any one's is enough for another world."""

    manifest: str
    seed: int | None
    epoch: Count
    tail: Tail
    parts: Number
    part: Count
    """Of the loader's workers on each rank."""
    steps: tuple[tuple[Number, Count], ...] = ()
    """Worlds, and how many rows each of their ranks has had of this epoch; the last is the present one."""
    version: Literal[1] = 1


known(Cursor)


@dataclass(frozen=True)
class Share:
    """Whose rows are read."""

    rank: int = 0
    world: int = 1
    part: int = 0
    parts: int = 1

    def __post_init__(self) -> None:
        """Refuse what is nobody's share."""
        for name, value, among in (("rank", self.rank, self.world), ("part", self.part, self.parts)):
            if not 0 <= value < among:
                raise InvalidError(f"{name} {value} of {among} is nobody's", "count from 0")


class Reading:
    """One rank's rows of epoch after epoch."""

    def __init__(
        self,
        line: HeadLine,
        share: Share,
        *,
        seed: int | None = None,
        tail: Tail = "repeat",
        ahead: int = 16,
        streams: int = 2,
        patience: float = 300.0,
    ) -> None:
        self._share, self._seed, self._tail = share, seed, tail
        self._line = line
        self.manifest = _manifest(line, patience)
        self._blocks = Blocks(self.manifest)
        self._fetcher = Fetcher(line, self.manifest, self._blocks, ahead=ahead, streams=streams, patience=patience)
        self._rows = self._blocks.rows
        self.epoch = 0
        self._past: tuple[Step, ...] = ()
        """Worlds that read of this epoch before."""
        self._done = 0

    @classmethod
    def open(
        cls, endpoint: str, *, rank: int = 0, world: int = 1, access: Access | None = None, **options: Any
    ) -> Self:
        """Return a rank's rows of the dataset that the head at `endpoint` serves."""
        return cls(HeadLine(endpoint, access), Share(rank, world), **options)

    @property
    def schema(self) -> Any:
        """Of every batch."""
        return self.manifest.arrow_schema

    @property
    def counts(self) -> Counts:
        """What reading has cost so far."""
        return self._fetcher.counts

    @property
    def left(self) -> int:
        """Rows of this epoch that are still to come."""
        return sum(stop - start for start, stop in self._spans()) - self._done

    def batches(self, rows: int) -> Iterator[Any]:
        """Yield the rest of this epoch in batches of so many rows, the last of what is left; then the next begins."""
        if rows < 1:
            raise InvalidError(f"batches of {rows} rows", "ask for 1 or more")
        held: list[Any] = []
        count = 0
        for piece in self._pieces():
            at = 0
            while piece.num_rows - at >= rows - count:
                held.append(piece.slice(at, rows - count))
                at += rows - count
                self._done += rows
                yield _joined(held)
                held, count = [], 0
            if at < piece.num_rows:
                held.append(piece.slice(at))
                count += piece.num_rows - at
        if count:
            self._done += count
            yield _joined(held)
        self.set_epoch(self.epoch + 1)

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch; the one under way goes on where it stands."""
        if epoch != self.epoch:
            self.epoch, self._past, self._done = epoch, (), 0

    def state_dict(self) -> dict[str, Any]:
        """Return where reading stands, after the last batch that was given."""
        steps = (*self._past, (self._share.world, self._done))
        cursor = Cursor(
            self.manifest.name, self._seed, self.epoch, self._tail, self._share.parts, self._share.part, steps
        )
        state: dict[str, Any] = msgspec.to_builtins(cursor)
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a cursor stands; in another world, what is left is shared out anew."""
        try:
            cursor = msgspec.convert(dict(state), Cursor)
        except msgspec.ValidationError as error:
            raise InvalidError(f"this is no cursor of a data cache: {error}") from None
        mine = self.manifest.name, self._share.parts, self._share.part, self._tail
        if (cursor.manifest, cursor.parts, cursor.part, cursor.tail) != mine:
            raise InvalidError(
                "the cursor is of another dataset, tail or number of loader workers",
                "resume with the same ones; only the number of ranks may change",
            )
        self._seed, self.epoch = cursor.seed, cursor.epoch
        *past, last = cursor.steps or ((self._share.world, 0),)
        self._past, self._done = tuple(past), last[1]
        if last[0] != self._share.world:
            self._past, self._done = cursor.steps, 0

    def close(self) -> None:
        """Let go of every connection."""
        self._fetcher.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _spans(self) -> list[Span]:
        """Return the positions of this share that were its own when this world began."""
        part = share([(0, self._blocks.total)], self._share.parts, self._share.part, "ragged")
        return share(remaining(part, self._past, self._tail), self._share.world, self._share.rank, self._tail)

    def _pieces(self) -> Iterator[Any]:
        """Yield what is left of this epoch, block by block, in the epoch's order."""
        order = Order(self._blocks, self._seed, self.epoch)
        # Within one world nothing is shared out anew: the rows that were had are the first ones.
        pieces = order.pieces(_after(self._spans(), self._done))
        for taken in self._fetcher.blocks((piece.block, partial(_taken, order, piece)) for piece in pieces):
            self.counts.rows += taken.num_rows
            yield taken


def _taken(order: Order, piece: Piece, block: Any) -> Any:
    """Return the rows of a piece, in their order."""
    places = order.rows(piece.block, block.num_rows)
    if places is None:
        return block.slice(piece.start, piece.stop - piece.start)
    return block.take(pa.array(places[piece.start : piece.stop]))


def columns(batch: Any) -> dict[str, Any]:
    """Return a batch's columns as numpy arrays, for JAX and others; fixed-size lists as matrices, without a copy.

    What numpy has no type for comes as an array of objects.
    """
    return {name: _array(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}


def _array(column: Any) -> Any:
    if pa.types.is_fixed_size_list(column.type) and not column.null_count:
        width = column.type.list_size
        return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), width)
    return column.to_numpy(zero_copy_only=False)


def _after(spans: list[Span], done: int) -> list[Span]:
    left = []
    for start, stop in spans:
        skipped = min(done, stop - start)
        done -= skipped
        if start + skipped < stop:
            left.append((start + skipped, stop))
    return left


def _joined(batches: list[Any]) -> Any:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _manifest(line: HeadLine, patience: float) -> Manifest:
    """Return what the head serves; a head that is not ready yet is waited for."""
    return patiently(lambda: line.manifest(line.open().manifest), patience, threading.Event())
