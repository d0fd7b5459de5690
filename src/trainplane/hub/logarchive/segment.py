"""A part of a log on the volume: a file of lines as they came, and one of checksums beside it.

    node.0.000000000000.lines    the lines, from that offset of the log on
    node.0.000000000000.sum      where each frame of them ends, and its checksum

Lines are added in frames of some KB. A checksum is of the frame's bytes and of whose they are (job, pod, container,
run and offset), so lines that a bad disk changed, or that somebody put into another log's place, are not shown. The
lines are written first: what has no checksum was written by a process that was killed meanwhile, and does not count.

An older release wrote `.log` files without checksums. They are read as they are.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

from trainplane.hub.errors import RecordError
from trainplane.hub.logarchive import volume
from trainplane.hub.logarchive.lines import NOTE
from trainplane.hub.logarchive.retention import BLOCK, NOTHING, Usage, of_file
from trainplane.kube.containerlogs import nanoseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

FRAME: Final = 16 << 10
"""Bytes from which on lines begin a new frame: what a flipped bit costs, and what the last line of a log costs."""
DIGITS: Final = 12
_LINES: Final = ".lines"
_SUM: Final = ".sum"
_PLAIN: Final = ".log"
_ENTRY: Final = struct.Struct("<II")
_SUMS_BYTES: Final = 1 << 20
_LONGEST: Final = 64 << 20
"""Bytes of a segment beyond which it is none of ours: they have 4 MiB and a batch of lines at most."""


class Frame(NamedTuple):
    """Some whole lines of a segment. Places count from its beginning."""

    begin: int
    end: int
    sum: int | None
    """None: there is none, for an older release wrote it."""


class Segment:
    """Lines of a log from one offset on. Only a segment made by this process is written to."""

    def __init__(self, folder: Path, name: str, start: int, *, plain: bool = False) -> None:
        self.start = start
        """The offset of its first line in the log."""
        stem = folder / f"{name}.{start:0{DIGITS}d}"
        self._lines = stem.with_name(stem.name + (_PLAIN if plain else _LINES))
        self._sums = None if plain else stem.with_name(stem.name + _SUM)
        self._seed = zlib.crc32(f"{folder.parent.name}/{folder.name}/{name}/{start}".encode())
        self._files: tuple[int, int] | None = None
        self._frames = 0
        self._frame = Frame(0, 0, 0)
        self.size = 0
        """Bytes of its lines."""
        self.usage = NOTHING
        """What it takes of the volume."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """Its files."""
        return (self._lines,) if self._sums is None else (self._lines, self._sums)

    @property
    def is_open(self) -> bool:
        """Whether lines can be added to it."""
        return self._files is not None

    @property
    def end(self) -> int:
        """The offset after its last line."""
        return self.start + self.size

    def look(self) -> int:
        """Find out what is there; return how many bytes of the lines belong to no frame. Raises OSError."""
        status = [path.lstat() for path in self.paths]
        self.usage = sum((volume.usage_of(each) for each in status), NOTHING)
        if self._sums is None:  # to look at all lines would take too long where there are many
            self.size = min(status[0].st_size, _LONGEST)
        else:
            frames = self.frames()
            self.size = frames[-1].end if frames else 0
        return status[0].st_size - self.size

    def frames(self) -> list[Frame]:
        """Return its frames in their order, as far as they can be believed; raises OSError."""
        if self._sums is None:
            return _scan(volume.read(self._lines, _LONGEST))
        sums = volume.read(self._sums, _SUMS_BYTES)
        there = self._lines.lstat().st_size
        found: list[Frame] = []
        begin = 0
        for end, checksum in _ENTRY.iter_unpack(sums[: len(sums) - len(sums) % _ENTRY.size]):
            if not begin < end <= min(there, _LONGEST):
                break
            found.append(Frame(begin, end, checksum))
            begin = end
        return found

    def load(self, frames: Iterable[Frame]) -> Iterator[tuple[Frame, bytes | None]]:
        """Iterate over frames with their lines; None where they are damaged. Raises OSError."""
        descriptor = volume.open_to_read(self._lines)
        try:
            for frame in frames:
                data = os.pread(descriptor, frame.end - frame.begin, frame.begin)
                yield frame, data if self._is_whole(frame, data) else None
        finally:
            os.close(descriptor)

    def cost(self, size: int) -> Usage:
        """Return what it would take to add so many bytes."""
        if self._frames and not self._begins_frame and -self.size // BLOCK == -(self.size + size) // BLOCK:
            return NOTHING  # most lines of most logs
        entries = self._frames + self._begins_frame
        return of_file(self.size + size) + of_file(entries * _ENTRY.size) - self.usage

    def append(self, data: bytes) -> None:
        """Add whole lines, or none; raises OSError, of a full volume for example."""
        cost = self.cost(len(data))
        lines, sums = self._open()
        begins = self._begins_frame
        begin = self.size if begins else self._frame.begin
        seed = self._start(begin) if begins else self._frame.sum or 0
        frame = Frame(begin, self.size + len(data), zlib.crc32(data, seed))
        count = self._frames + begins
        try:
            volume.write_all(lines, data)
            os.pwrite(sums, _ENTRY.pack(frame.end, frame.sum or 0), (count - 1) * _ENTRY.size)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(lines, self.size)
                os.lseek(lines, self.size, os.SEEK_SET)
                os.ftruncate(sums, self._frames * _ENTRY.size)
            if self.size == 0:
                self.remove()
            raise
        self._frames, self._frame, self.size = count, frame, frame.end
        if cost is not NOTHING:
            self.usage += cost

    def begins_well(self) -> bool:
        """Return whether its first lines are whole, and so it is what it is called; raises nothing."""
        try:
            first = self.frames()[:1]
            return any(data is not None for _, data in self.load(first))
        except (OSError, RecordError):
            return False

    def recover(self) -> None:
        """Take back frames at the end that are damaged: lines that come again with the resumed stream."""
        frames = self.frames()
        while frames and not self._ends_well(frames[-1]):
            frames.pop()
        self.size = frames[-1].end if frames else 0
        if self._sums is not None and frames:  # with none left it is set aside as it is
            with contextlib.suppress(OSError):
                os.truncate(self._sums, len(frames) * _ENTRY.size)

    def remove(self) -> None:
        """Remove it from the volume."""
        self.close()
        for path in self.paths:
            path.unlink(missing_ok=True)
        self.size, self.usage = 0, NOTHING

    def close(self) -> None:
        """Close its files; nothing can be added any more."""
        files, self._files = self._files, None
        for descriptor in files or ():
            os.close(descriptor)

    @property
    def _begins_frame(self) -> bool:
        return self._frames == 0 or self._frame.end - self._frame.begin >= FRAME

    def _open(self) -> tuple[int, int]:
        if self._files is None:
            if self._sums is None or self.size:
                raise RecordError("a segment that another process made is not written to")
            lines = volume.open_to_write(self._lines, new=True)
            try:
                self._files = lines, volume.open_to_write(self._sums, new=True)
            except OSError:
                os.close(lines)
                self._lines.unlink(missing_ok=True)
                raise
        return self._files

    def _start(self, begin: int) -> int:
        return zlib.crc32(begin.to_bytes(8, "little"), self._seed)

    def _is_whole(self, frame: Frame, data: bytes) -> bool:
        if len(data) != frame.end - frame.begin or not data.endswith(b"\n"):
            return False
        return frame.sum is None or zlib.crc32(data, self._start(frame.begin)) == frame.sum

    def _ends_well(self, frame: Frame) -> bool:
        return any(data is not None for _, data in self.load([frame]))


def parse_name(file: str) -> tuple[str, int, str] | None:
    """Return of a segment's file the name of the log, the offset and the kind (`lines`, `sum`, `log`); else None."""
    stem, _, kind = file.rpartition(".")
    name, _, digits = stem.rpartition(".")
    if not name or f".{kind}" not in {_LINES, _SUM, _PLAIN} or not DIGITS <= len(digits) <= 18:
        return None
    return (name, int(digits), kind) if digits.isascii() and digits.isdigit() else None


def _scan(data: bytes) -> list[Frame]:
    """Return frames of lines that have no checksums, up to the last line that is whole: ended, and with a time."""
    end = data.rfind(b"\n") + 1
    while end:
        begin = data.rfind(b"\n", 0, end - 1) + 1
        if nanoseconds(data[begin : end - 1].removeprefix(NOTE)) is not None:
            break
        end = begin
    frames, begin = [], 0
    while begin < end:
        stop = data.find(b"\n", min(begin + FRAME, end) - 1) + 1
        frames.append(Frame(begin, stop, None))
        begin = stop
    return frames
