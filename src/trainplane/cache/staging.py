"""Parts that were written to a worker and wait for their commit: Arrow files on its disk, whole or not there.

They outlive a restart of the worker. A part that is written again replaces the one before; what is left of a writer
that went away in the middle is removed. A writer that stands still gives its place to the next one who wants to write.

Files are named by digests, never by what a client calls its parts.
"""

from __future__ import annotations

import hashlib
import secrets
import shutil
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from trainplane.cache.errors import DiskError, InvalidError, UnreachableError
from trainplane.cache.written import MOST_PARTS, Receipt, schema_digest, writable

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator
    from pathlib import Path

    from trainplane.cache.manifest import Fragment
    from trainplane.cache.written import Address

MOST_WRITERS: Final = 16
STILL: Final = 30.0
"""Seconds without a batch after which a writer's place is given to another."""
LARGEST_BATCH: Final = 256 << 20
_LARGEST_NOTE: Final = 1 << 16
_OF_DISK: Final = 0.9


@dataclass(eq=False)
class _Writer:
    """One part that is being written."""

    heard: float
    size: int = 0
    lost: bool = field(default=False)


class Staging:
    """The parts on a worker's disk."""

    def __init__(self, root: Path, bound: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        """Find what lies here from before; `bound` is how many bytes may (0: nine tenths of what is free now)."""
        self._folder, self._clock = root / "parts", clock
        self._lock = threading.Lock()
        self._writers: list[_Writer] = []
        self._parts: dict[str, Receipt] = {}
        self.batches = 0
        """That were let in, since this process began."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for leftover in self._folder.glob("*.part-*"):
                leftover.unlink(missing_ok=True)
            self._bound = bound or int(shutil.disk_usage(self._folder).free * _OF_DISK)
            for note in self._folder.glob("*.json"):
                self._attach(note)
        except OSError as error:
            raise DiskError(f"parts cannot be kept: {error.strerror}") from None

    def has(self, dataset: str, fragment: Fragment) -> bool:
        """Whether exactly this part is here, and no other one of its name."""
        receipt = self._parts.get(part_key(dataset, fragment.name))
        return receipt is not None and receipt.digest == fragment.version

    def get(self, dataset: str, fragment: Fragment) -> Iterable[Any] | None:
        """Return the batches of exactly this part; None where it is not here, or not what was written any more."""
        if not self.has(dataset, fragment):
            return None
        path = self._path(dataset, fragment.name)
        if _digest(path)[0] != fragment.version:
            self.drop(dataset, fragment.name)
            return None
        return _batches(path)

    def drop(self, dataset: str, part: str) -> None:
        """Forget a part, which is kept elsewhere by now."""
        path = self._path(dataset, part)
        self._parts.pop(part_key(dataset, part), None)
        for one in (path.with_suffix(".json"), path):
            with suppress(OSError):
                one.unlink(missing_ok=True)

    def drop_others(self, dataset: str, parts: Container[str]) -> None:
        """Forget what was written to a dataset and not committed."""
        for receipt in list(self._parts.values()):
            if receipt.dataset == dataset and receipt.part not in parts:
                self.drop(dataset, receipt.part)

    def write(self, where: Address, worker: str, schema: Any, batches: Iterable[Any]) -> Receipt:
        """Keep a part, whole or not at all; return the receipt for it."""
        kept = writable(schema)
        self._refuse_other_schema(where, kept)
        path = self._path(where.dataset, where.part)
        part = path.with_suffix(f".part-{secrets.token_hex(8)}")
        rows = 0
        try:
            with self._place() as writer:
                with pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, kept) as file:
                    for batch in batches:
                        _judge(batch)
                        self._heard(writer, batch)
                        rows += batch.num_rows
                        file.write_batch(_copied(batch, kept))
                digest, size = _digest(part)
                receipt = Receipt(where.dataset, where.part, worker, rows, size, digest, schema_digest(kept))
                self._keep(part, path, receipt, writer)
        except pa.ArrowException as error:
            raise InvalidError(f"part {where.part!r} is not what its schema says: {str(error)[:200]}") from None
        except OSError as error:
            raise DiskError(f"part {where.part!r} cannot be kept: {error.strerror or error}") from None
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        return receipt

    @property
    def size(self) -> int:
        """Bytes that are kept or being written."""
        return sum(one.size for one in self._parts.copy().values()) + sum(one.size for one in self._writers.copy())

    def _keep(self, part: Path, path: Path, receipt: Receipt, writer: _Writer) -> None:
        with self._lock:
            if writer.lost:
                raise _too_slow()
            path.with_suffix(".json").unlink(missing_ok=True)
            part.rename(path)
            note = path.with_suffix(f".part-{secrets.token_hex(8)}")
            note.write_bytes(msgspec.json.encode(receipt))
            note.rename(path.with_suffix(".json"))
            self._parts[part_key(receipt.dataset, receipt.part)] = receipt

    def _attach(self, note: Path) -> None:
        """Know a part from before a restart; its bytes are believed when they are read (`get`)."""
        try:
            receipt = msgspec.json.decode(note.read_bytes()[:_LARGEST_NOTE], type=Receipt)
        except msgspec.MsgspecError:
            return
        path = self._path(receipt.dataset, receipt.part)
        if path.with_suffix(".json") == note and path.exists() and path.stat().st_size == receipt.size:
            self._parts[part_key(receipt.dataset, receipt.part)] = receipt

    @contextmanager
    def _place(self) -> Iterator[_Writer]:
        """Take a place among those who write; the place of one that stands still, where none is free."""
        writer = _Writer(self._clock())
        with self._lock:
            if len(self._parts) >= MOST_PARTS:
                raise DiskError(f"{MOST_PARTS} parts wait here for a commit", "commit, or write larger parts")
            if len(self._writers) >= MOST_WRITERS:
                slowest = min(self._writers, key=lambda one: one.heard)
                if writer.heard - slowest.heard < STILL:
                    raise UnreachableError(f"{MOST_WRITERS} parts are being written here", "try again in a moment")
                slowest.lost = True
                self._writers.remove(slowest)
            self._writers.append(writer)
        try:
            yield writer
        finally:
            with self._lock, suppress(ValueError):
                self._writers.remove(writer)

    def _heard(self, writer: _Writer, batch: Any) -> None:
        """Let a batch in, or say why not."""
        if writer.lost:
            raise _too_slow()
        if batch.nbytes > LARGEST_BATCH:
            raise InvalidError(f"a batch of {batch.nbytes} bytes", f"write batches of at most {LARGEST_BATCH}")
        if self.size + batch.nbytes > self._bound:
            raise DiskError(f"the {self._bound} bytes for parts are full", "commit what is written, or add workers")
        with self._lock:
            self.batches += 1
            writer.heard, writer.size = self._clock(), writer.size + batch.nbytes

    def _refuse_other_schema(self, where: Address, schema: Any) -> None:
        digest = schema_digest(schema)
        for other in self._parts.copy().values():
            if other.dataset == where.dataset and other.part != where.part and other.schema != digest:
                raise InvalidError(
                    f"part {where.part!r} has another schema than part {other.part!r}", "write one schema to a dataset"
                )

    def _path(self, dataset: str, part: str) -> Path:
        return self._folder / f"{part_key(dataset, part)}.arrow"


def part_key(dataset: str, part: str) -> str:
    """Return what a part's files are called."""
    return hashlib.sha256(f"{dataset}/{part}".encode()).hexdigest()[:32]


def _batches(path: Path) -> Iterator[Any]:
    with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as file:
        for number in range(file.num_record_batches):
            yield file.get_batch(number)


def _judge(batch: Any) -> None:
    """Refuse a batch whose offsets lie: whoever sent it may have written anything, so it is read to the end first."""
    try:
        batch.validate(full=True)
    except pa.ArrowException as error:
        raise InvalidError(f"a batch that is not what its schema says: {str(error)[:200]}") from None


def _copied(batch: Any, schema: Any) -> Any:
    """Return a batch of its own bytes alone: a slice would be written with its neighbours', never twice alike."""
    empty = batch.slice(0, 0)
    table = pa.Table.from_batches([batch, empty]).cast(schema).combine_chunks()
    return next(iter(table.to_batches()), empty.cast(schema))


def _digest(path: Path) -> tuple[str, int]:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size


def _too_slow() -> UnreachableError:
    return UnreachableError(f"nothing came for {STILL:.0f} s, and others wanted to write", "write the part again")
