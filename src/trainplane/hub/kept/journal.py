"""The kept lines of one run of a container: an append-only text in segments, on a volume.

    node.0.000000000000.log     the first segment; the number is how many bytes came before it
    node.0.000001048576.log     the next one
    node.0.end                  the log was read to its end, and why that was the end

A line is kept as it came (`lines`), with its time, so the journal is also the note of how far the log was read: nothing
else has to be written when a line is, and nothing can disagree with it. A process that is killed in a write leaves half
a line at the end of the last segment at most; `Journal` cuts it off when it opens, and the line comes again with the
resumed stream. A machine that crashes may lose what was not on its disk yet; that comes again too.

The oldest segment is dropped to stay within bounds. Offsets count from the first byte ever kept, so a reader knows how
much it missed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from typing import TYPE_CHECKING, Final

from trainplane.hub.kept.lines import NOTE
from trainplane.kube.containerlogs import nanoseconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_DIGITS: Final = 12
_BLOCK: Final = 1 << 16
_SKEW: Final = 5_000_000_000
"""Nanoseconds by which a line may be older than the one before it; the search for old lines goes so much further."""


class Journal:
    """One run of one container. Written by one follower, read by any number of readers on the same event loop."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self._segments = _find(folder, name)
        self._file: int | None = None
        self._news = asyncio.Event()
        self.readers: set[asyncio.Event] = set()
        """Of those who read on as it grows: set at each change."""
        path = self._end_path
        self.ended: str | None = path.read_text() if path.exists() else None
        """Why the log has no more lines; None while it may have."""
        self.end = self._recover() if self.ended is None else self._measure()
        """Bytes ever kept: the offset after the last line."""

    @property
    def begin(self) -> int:
        """The offset of the oldest line that is still there."""
        return self._segments[0] if self._segments else self.end

    @property
    def size(self) -> int:
        """Bytes on the volume."""
        return self.end - self.begin

    @property
    def segments(self) -> int:
        """How many files there are; all but the last may be dropped."""
        return len(self._segments)

    @property
    def news(self) -> asyncio.Event:
        """An event that is set at the next change. Take it before looking, then wait for it."""
        return self._news

    def append(self, lines: Sequence[bytes], *, segment_bytes: int) -> bool:
        """Keep lines, whole or not at all; tell whether a segment was begun for them.

        Raises OSError, of a full volume for example, and has then kept none of them.
        """
        if not lines:
            return False
        data = b"\n".join(lines) + b"\n"
        began = not self._segments or self.end - self._segments[-1] >= segment_bytes
        if began:
            self.close()
            self._segments.append(self.end)
        self._write(data)
        self.end += len(data)
        self._tell()
        return began

    def finish(self, reason: str) -> None:
        """Note that the log was read to its end."""
        self.close()
        self._end_path.write_text(reason)
        self.ended = reason
        self._tell()

    def read(self, offset: int, limit: int = 1 << 18) -> tuple[bytes, int]:
        """Return whole lines from an offset on, with their newlines, and the offset after them.

        About `limit` bytes, more only for one long line; empty at the end. An offset before `begin` reads from there.
        """
        offset = max(offset, self.begin)
        if offset >= self.end:
            return b"", offset
        place = max(place for place, start in enumerate(self._segments) if start <= offset)
        start = self._segments[place]
        stop = self._segments[place + 1] if place + 1 < len(self._segments) else self.end
        with self._path(start).open("rb") as file:
            file.seek(offset - start)
            data = file.read(min(limit, stop - offset))
            if not data.endswith(b"\n"):
                cut = data.rfind(b"\n") + 1
                data = data[:cut] if cut else data + file.readline()
        # A segment that a crash of the machine left short has nothing more: what follows is in the next one.
        return (data, offset + len(data)) if data else self.read(stop, limit)

    def backward(self) -> Iterator[tuple[int, bytes]]:
        """Iterate over the lines from the last to the first, each with its offset."""
        for start in reversed(self._segments):
            stop = self.end if start == self._segments[-1] else start + self._path(start).stat().st_size
            with self._path(start).open("rb") as file:
                rest = b""
                position = stop
                while position > start:
                    step = min(_BLOCK, position - start)
                    position -= step
                    file.seek(position - start)
                    pieces = (file.read(step) + rest).split(b"\n")
                    rest = pieces.pop(0)
                    yield from _placed(position + len(rest) + 1, pieces)
                if rest:
                    yield start, rest

    def newest(self) -> int | None:
        """Return the time of the last line, in nanoseconds; None of an empty journal."""
        times = (nanoseconds(line) for _, line in self.backward())
        return next((time for time in times if time is not None), None)

    def since(self, moment: int) -> list[bytes]:
        """Return the container's kept lines that are not older than a time, in their order."""
        found = []
        for _, line in self.backward():
            printed = None if line.startswith(NOTE) else nanoseconds(line)
            if printed is None:
                continue
            if printed >= moment:
                found.append(line)
            elif printed < moment - _SKEW:
                break
        return found[::-1]

    def drop_oldest(self) -> int:
        """Remove the oldest segment, unless it is the only one; return the bytes that this freed."""
        if len(self._segments) < 2:
            return 0
        oldest = self._segments.pop(0)
        self._path(oldest).unlink(missing_ok=True)
        return self._segments[0] - oldest

    def close(self) -> None:
        """Close the file that is open for writing; the next `append` opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @property
    def _end_path(self) -> Path:
        return self.folder / f"{self.name}.end"

    def _path(self, start: int) -> Path:
        return self.folder / f"{self.name}.{start:0{_DIGITS}d}.log"

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        for event in (news, *self.readers):
            event.set()

    def _write(self, data: bytes) -> None:
        start = self._segments[-1]
        if self._file is None:
            self._file = os.open(self._path(start), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._file, view) :]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self.end - start)
            if self.end == start:
                self.close()
                self._path(self._segments.pop()).unlink(missing_ok=True)
            raise

    def _measure(self) -> int:
        return self._segments[-1] + self._path(self._segments[-1]).stat().st_size if self._segments else 0

    def _recover(self) -> int:
        """Cut off what a killed write left behind; return the offset after the last whole line."""
        while self._segments:
            start = self._segments[-1]
            path = self._path(start)
            whole = _whole(path)
            if whole:
                os.truncate(path, whole)
                return start + whole
            path.unlink()
            self._segments.pop()
            if not self._segments:
                return start
        return 0


def _find(folder: Path, name: str) -> list[int]:
    pattern = re.compile(re.escape(name) + rf"\.(\d{{{_DIGITS},}})\.log")
    found = (pattern.fullmatch(entry.name) for entry in folder.iterdir())
    return sorted(int(match[1]) for match in found if match)


def _whole(path: Path) -> int:
    """Return the bytes of a segment up to the last line that is whole: ended, and with a time."""
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    while end:
        begin = data.rfind(b"\n", 0, end - 1) + 1
        if nanoseconds(data[begin : end - 1].removeprefix(NOTE)) is not None:
            return end
        end = begin
    return 0


def _placed(offset: int, lines: list[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield lines that stand one after the other from an offset on, the last first; an empty one is no line."""
    offsets = []
    for line in lines:
        offsets.append(offset)
        offset += len(line) + 1
    for place in range(len(lines) - 1, -1, -1):
        if lines[place]:
            yield offsets[place], lines[place]
