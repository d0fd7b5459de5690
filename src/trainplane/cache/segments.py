"""Decoded fragments on local disk: Arrow IPC files, written once, memory-mapped, served without a copy.

The page cache is the memory tier, so a dataset may be larger than memory, and a worker that restarts attaches what it
has in milliseconds. Each block's checksum is written beside the file. A file that this process did not write itself is
believed block by block, when first read: what a crash or a bad disk left behind is found before anybody trains on it.

A segment is named by numbers and digests alone, never by what a source calls its files.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from trainplane.cache.errors import ChangedError, DiskError
from trainplane.cache.known import known

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_LARGEST_NOTE: Final = 64 << 20


class Note(msgspec.Struct, frozen=True):
    """What stands beside a segment."""

    rows: int
    size: int
    ends: tuple[int, ...]
    """Where the bytes of each block end in the file."""
    checksums: tuple[int, ...]
    """Of each block's bytes."""

    @property
    def digest(self) -> str:
        """Of the whole segment: the same wherever the same rows were decoded by the same code."""
        return hashlib.sha256(repr(self.checksums).encode()).hexdigest()


known(Note)


class Segment:
    """A decoded fragment that can be served."""

    def __init__(self, path: Path, note: Note, *, believed: bool) -> None:
        self.path, self.note = path, note
        self._map = pa.memory_map(str(path))
        with pa.ipc.open_file(self._map) as reader:
            self._blocks = [reader.get_batch(number) for number in range(reader.num_record_batches)]
            self.schema = reader.schema
        self._bytes = memoryview(self._map.read_buffer(note.size))
        self._doubted = set() if believed else set(range(len(self._blocks)))

    def block(self, number: int) -> Any:
        """Return a block by its number within the fragment; an error where the disk has other bytes than were written.

        Two threads that doubt a block at once both look; neither trusts before it has.
        """
        if number in self._doubted:
            if _checksum(self._bytes[self._start(number) : self.note.ends[number]]) != self.note.checksums[number]:
                raise DiskError(f"block {number} of {self.path.name} is not what was written")
            self._doubted.discard(number)
        return self._blocks[number]

    def _start(self, number: int) -> int:
        return self.note.ends[number - 1] if number else 0


class Shelf:
    """The segments of one manifest in a folder."""

    def __init__(self, root: Path, manifest: str, schema: Any, block_rows: int) -> None:
        self._folder = root / manifest[:32]
        self._schema, self._block_rows = schema, block_rows
        self._writing = threading.Lock()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for part in self._folder.glob("*.part-*"):
                part.unlink(missing_ok=True)
        except OSError as error:
            raise _disk(error) from None

    def attach(self, fragment: int, rows: int) -> Segment | None:
        """Return a segment that lies here from before; None where there is none, or not this one."""
        path = self._folder / f"{fragment}.arrow"
        try:
            encoded = path.with_suffix(".json").read_bytes()
            note = msgspec.json.decode(encoded[:_LARGEST_NOTE], type=Note)
            if note.rows != rows or path.stat().st_size != note.size:
                return None
            segment = Segment(path, note, believed=False)
        except (OSError, msgspec.MsgspecError, pa.ArrowException):
            return None
        counts = [self._block_rows] * (rows // self._block_rows) + ([rest] if (rest := rows % self._block_rows) else [])
        whole = segment.schema.equals(self._schema) and [block.num_rows for block in segment._blocks] == counts  # noqa: SLF001 of this file
        return segment if whole and len(note.ends) == len(note.checksums) == len(counts) else None

    def write(self, fragment: int, rows: int, batches: Iterable[Any]) -> Segment:
        """Return the segment of a fragment's batches, whole or not at all; exactly so many rows, or an error."""
        path = self._folder / f"{fragment}.arrow"
        part = path.with_suffix(f".part-{secrets.token_hex(8)}")
        ends: list[int] = []
        found = 0
        try:
            with pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, self._schema) as writer:
                for block in rechunked(batches, self._schema, self._block_rows):
                    found += block.num_rows
                    if found > rows:
                        break
                    writer.write_batch(block)
                    ends.append(sink.tell())
            if found != rows:
                raise ChangedError(f"fragment {fragment} has {found} rows or more and not the {rows} of the manifest")
            note = self._noted(part, rows, ends)
            with self._writing:
                part.rename(path)
                put_whole(path.with_suffix(".json"), msgspec.json.encode(note))
        except OSError as error:
            raise _disk(error) from None
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        return Segment(path, note, believed=True)

    def has(self, fragment: int) -> bool:
        """Whether a segment lies here from before, good or not."""
        return (self._folder / f"{fragment}.json").exists()

    def drop(self, fragment: int) -> None:
        """Forget a segment that turned out bad."""
        path = self._folder / f"{fragment}.arrow"
        path.with_suffix(".json").unlink(missing_ok=True)
        path.unlink(missing_ok=True)

    @staticmethod
    def _noted(part: Path, rows: int, ends: list[int]) -> Note:
        """Return what to write beside a file, from its bytes as they now lie there."""
        with pa.memory_map(str(part)) as mapped:
            size = mapped.size()
            view = memoryview(mapped.read_buffer(size))
            checksums = tuple(_checksum(view[start:end]) for start, end in zip([0, *ends], ends, strict=False))
        return Note(rows, size, tuple(ends), checksums)


def rechunked(batches: Iterable[Any], schema: Any, rows: int) -> Iterator[Any]:
    """Yield the same rows in batches of exactly so many, the last of what is left.

    A batch is copied once, so that no block keeps a larger buffer alive or is written with somebody else's bytes.
    """
    held: list[Any] = []
    count = 0
    for batch in batches:
        at = 0
        while batch.num_rows - at >= rows - count:
            held.append(batch.slice(at, rows - count))
            at += rows - count
            yield _joined(held, schema)
            held, count = [], 0
        if at < batch.num_rows:
            held.append(batch.slice(at))
            count += batch.num_rows - at
    if count:
        yield _joined(held, schema)


def _joined(batches: list[Any], schema: Any) -> Any:
    # One chunk alone would not be copied, and be written with bytes of its neighbours: never two segments alike.
    empty = batches[0].slice(0, 0)
    return pa.Table.from_batches([*batches, empty], schema).combine_chunks().to_batches()[0]


def _checksum(content: Any) -> int:
    """Return the CRC of a block's bytes: bad disks are no forgers, and it costs a tenth of a cryptographic digest."""
    return zlib.crc32(content)


def put_whole(path: Path, content: bytes) -> None:
    """Write a small file, whole or not at all."""
    part = path.with_suffix(f".part-{secrets.token_hex(8)}")
    part.write_bytes(content)
    part.rename(path)


def _disk(error: OSError) -> DiskError:
    return DiskError(f"a segment cannot be written: {os.strerror(error.errno) if error.errno else error}")
