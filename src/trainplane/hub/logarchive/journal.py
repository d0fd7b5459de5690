"""The kept lines of one run of a container: an append-only text in segments, on a volume.

    node.0.000000000000.lines   the first segment (`segment`); the number is how many bytes came before it
    node.0.000001048576.lines   the next one
    node.0.end                  the log was read to its end, and why that was the end

A line is kept as it came (`lines`), with its time, so the journal is also the note of how far the log was read: nothing
else has to be written when a line is, and nothing can disagree with it. A process that is killed in a write leaves half
a line behind the last frame of the last segment at most; it does not count, the next process begins a segment of its
own, and the line comes again with the resumed stream. A machine that crashes may lose what was not on its disk yet;
that comes again too.

The oldest segment is dropped to stay within bounds. Offsets count from the first byte ever kept, so a reader knows how
much it missed. Where lines are damaged, a reader gets a remark in their place.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from trainplane.hub.errors import RecordError
from trainplane.hub.logarchive import records, volume
from trainplane.hub.logarchive.lines import NOTE, note
from trainplane.hub.logarchive.records import RECORD_BYTES, EndRecord
from trainplane.hub.logarchive.retention import NOTHING, Retention, Usage, of_file
from trainplane.hub.logarchive.segment import DIGITS, Segment, parse_name
from trainplane.hub.logarchive.volume import SetAside
from trainplane.kube.containerlogs import nanoseconds

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_SKEW: Final = 5_000_000_000
"""Nanoseconds by which a line may be older than the one before it; the search for old lines goes so much further."""
_DAMAGED: Final = "{} bytes of lines are damaged on the hub's volume and left out"
_OLD_ENDS: Final = {b"ended", b"gone"}
_END_SUFFIX: Final = ".end"


@dataclass
class Files:
    """What there is of one journal in its folder."""

    segments: dict[int, set[str]] = field(default_factory=dict)
    """By offset: which files a segment has."""
    end: bool = False


def scan(folder: Path, aside: SetAside) -> tuple[dict[str, Files], list[Path]]:
    """Return the files of each journal in a folder, and what is none of any; links and folders are set aside."""
    journals: dict[str, Files] = {}
    others = []
    for entry in volume.entries(folder):
        path, parsed = folder / entry.name, parse_name(entry.name)
        if parsed is None and not entry.name.endswith(_END_SUFFIX):
            others.append(path)
        elif not volume.is_file(entry):
            aside.put(path, "it is no file")
        elif parsed is None:
            journals.setdefault(entry.name.removesuffix(_END_SUFFIX), Files()).end = True
        else:
            name, start, kind = parsed
            journals.setdefault(name, Files()).segments.setdefault(start, set()).add(kind)
    return journals, others


class Journal:
    """One run of one container. Written by one follower, read by any number of readers."""

    def __init__(self, folder: Path, name: str, aside: SetAside | None = None, files: Files | None = None) -> None:
        self.folder = folder
        self.name = name
        self._aside = aside or SetAside(folder / "set-aside", Retention().set_aside)
        self._told: set[tuple[int, int]] = set()
        files = files or scan(folder, self._aside)[0].get(name) or Files()
        self._segments = self._find(files)
        self.readers: set[asyncio.Event] = set()
        """Of those who read on as it grows: set at each change."""
        self._end_usage = NOTHING
        record = self._read_end() if files.end else None
        self.ended: str | None = None if record is None else record.reason
        """Why the log has no more lines; None while it may have."""
        self.end = self._measure() if record is None else record.end
        """Bytes ever kept: the offset after the last line."""

    @property
    def begin(self) -> int:
        """The offset of the oldest line that is still there."""
        return self._segments[0].start if self._segments else self.end

    @property
    def size(self) -> int:
        """Bytes of lines."""
        return self.end - self.begin

    @property
    def usage(self) -> Usage:
        """What it takes of the volume."""
        return sum((segment.usage for segment in self._segments), self._end_usage)

    @property
    def segments(self) -> int:
        """How many segments there are."""
        return len(self._segments)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing of it on the volume."""
        return not self._segments and self.ended is None

    @property
    def paths(self) -> tuple[Path, ...]:
        """Its files."""
        ends = (self._end_path,) if self.ended is not None else ()
        return (*(path for segment in self._segments for path in segment.paths), *ends)

    def cost(self, size: int, *, segment_bytes: int) -> Usage:
        """Return what it would take of the volume to append so many bytes."""
        if self._begins_segment(segment_bytes):
            return Segment(self.folder, self.name, self.end).cost(size)
        return self._segments[-1].cost(size)

    def append(self, lines: Sequence[bytes], *, segment_bytes: int) -> bool:
        """Keep lines, whole or not at all; tell whether a segment was begun for them.

        Raises OSError, of a full volume for example, and has then kept none of them.
        """
        if not lines:
            return False
        data = b"\n".join(lines) + b"\n"
        begins = self._begins_segment(segment_bytes)
        if begins:
            segment = Segment(self.folder, self.name, self.end)
            segment.append(data)
            self.close()
            self._segments.append(segment)
        else:
            self._segments[-1].append(data)
        self.end += len(data)
        self._wake_readers()
        return begins

    def finish(self, reason: str, *, write: bool = True) -> Usage:
        """Note that the log was read to its end, on the volume too; return what that takes. Raises OSError."""
        self.close()
        self.ended = reason
        self._wake_readers()
        if not write:
            return NOTHING
        data = records.encode(EndRecord(self._identity, reason, self.end))
        volume.write(self._end_path, data)
        cost, self._end_usage = of_file(len(data)) - self._end_usage, of_file(len(data))
        return cost

    def read(self, offset: int, limit: int = 1 << 18) -> tuple[bytes, int]:
        """Return whole lines from an offset on, with their newlines, and the offset after them.

        About `limit` bytes, more only for one long line; empty at the end. An offset before `begin` reads from there.
        """
        segments, end = list(self._segments), self.end  # as they are now: a thread may read while lines are added
        offset = max(offset, segments[0].start if segments else end)
        first = bisect_right([segment.start for segment in segments], offset) - 1
        for segment in segments[max(0, first) :]:
            data, after = self._read(segment, offset, limit)
            if data:
                return data, after
        return b"", max(offset, end)

    def backward(self) -> Iterator[tuple[int, bytes]]:
        """Iterate over the lines from the last to the first, each with its offset; what is damaged is left out."""
        for segment in list(reversed(self._segments)):
            try:
                for frame, data in segment.load(reversed(segment.frames())):
                    if data is None:
                        self._tell_damage(segment, frame.begin, frame.end)
                    else:
                        yield from _placed(segment.start + frame.begin, data[:-1].split(b"\n"))
            except FileNotFoundError:
                continue  # dropped meanwhile
            except (OSError, RecordError) as error:
                self._tell_damage(segment, 0, segment.size, error)

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

    def drop_oldest(self) -> Usage:
        """Remove the oldest segment, also if it is the only one; return what this freed."""
        if not self._segments:
            return NOTHING
        oldest = self._segments.pop(0)
        freed = oldest.usage
        oldest.remove()
        return freed

    def drop(self, *, mark: bool) -> Usage:
        """Remove all lines; where `mark` is, what says that it ended stays. Return what this freed."""
        freed = NOTHING
        while self._segments:
            freed += self.drop_oldest()
        if not mark and self.ended is not None:
            self._end_path.unlink(missing_ok=True)
            freed, self._end_usage = freed + self._end_usage, NOTHING
        self._wake_readers()
        return freed

    def close(self) -> None:
        """Close the segment that is open for writing."""
        if self._segments:
            self._segments[-1].close()

    def _begins_segment(self, segment_bytes: int) -> bool:
        return not self._segments or not self._segments[-1].is_open or self._segments[-1].size >= segment_bytes

    def _read(self, segment: Segment, offset: int, limit: int) -> tuple[bytes, int]:
        """Return lines of one segment from an offset on; none if it has no more."""
        found = bytearray()
        position = max(0, offset - segment.start)
        begin = position
        try:
            for frame, data in segment.load(frame for frame in segment.frames() if frame.end > position):
                if data is None and not found:
                    self._tell_damage(segment, frame.begin, frame.end)
                    remark = note(b"", _DAMAGED.format(frame.end - frame.begin)) + b"\n"
                    return remark, segment.start + frame.end
                if data is None:
                    break
                found += data[max(0, begin - frame.begin) :]
                if len(found) >= limit:
                    break
        except FileNotFoundError:
            return b"", offset  # dropped meanwhile
        except (OSError, RecordError) as error:
            left = segment.end - max(offset, segment.start)
            if not found and left > 0:
                self._tell_damage(segment, 0, segment.size, error)
                return note(b"", _DAMAGED.format(left)) + b"\n", segment.end
        if len(found) > limit:
            cut = found.rfind(b"\n", 0, limit) + 1 or found.find(b"\n") + 1
            del found[cut:]
        return bytes(found), max(offset, segment.start) + len(found)

    @property
    def _end_path(self) -> Path:
        return self.folder / f"{self.name}{_END_SUFFIX}"

    @property
    def _identity(self) -> str:
        return f"{self.folder.parent.name}/{self.folder.name}/{self.name}"[-253:]

    def _wake_readers(self) -> None:
        for event in self.readers:
            event.set()

    def _tell_damage(self, segment: Segment, begin: int, end: int, error: Exception | None = None) -> None:
        """Tell of damaged lines, once."""
        if (segment.start, begin) not in self._told:
            self._told.add((segment.start, begin))
            why = f"{end - begin} bytes of its lines do not fit their checksum" if error is None else str(error)
            self._aside.tell(segment.paths[0], why)

    def _find(self, files: Files) -> list[Segment]:
        """Return the segments that are there, in their order; files that are none are set aside."""
        found: list[Segment] = []
        for start, present in sorted(files.segments.items()):
            segment = Segment(self.folder, self.name, start, plain=present == {"log"})
            if present in ({"log"}, {"lines", "sum"}) and self._look(segment):
                if found and start < found[-1].end:
                    self._keep_genuine(found, segment)
                else:
                    found.append(segment)
                continue
            for kind in sorted(present):
                path = self.folder / f"{self.name}.{start:0{DIGITS}d}.{kind}"
                self._aside.put(path, "no line of it fits a checksum, or there are none")
        return found

    def _keep_genuine(self, found: list[Segment], segment: Segment) -> None:
        """Add a segment that overlaps the one before it, but not one that somebody made a copy of."""
        if not found[-1].begins_well():
            self._set_aside(found.pop())
        if segment.begins_well():
            found.append(segment)
        else:
            self._set_aside(segment)

    def _set_aside(self, segment: Segment) -> None:
        for path in segment.paths:
            self._aside.put(path, "no line of it is whole")

    def _look(self, segment: Segment) -> bool:
        """Find out what a segment has; say whether it has anything."""
        try:
            left = segment.look()
        except (OSError, RecordError) as error:
            self._aside.tell(segment.paths[0], str(error))
            return False
        if segment.size and left:
            self._aside.tell(segment.paths[0], f"{left} bytes behind its last frame are not shown")
        return segment.size > 0

    def _read_end(self) -> EndRecord | None:
        """Return what says that the log ended; None if nothing does, or nothing that can be believed."""
        try:
            data = volume.read(self._end_path, RECORD_BYTES)
            record = self._decode_end(data)
        except (OSError, RecordError) as error:
            self._aside.put(self._end_path, str(error))
            return None
        self._end_usage = of_file(len(data))
        return record

    def _decode_end(self, data: bytes) -> EndRecord:
        last = self._segments[-1].end if self._segments else 0
        if data in _OLD_ENDS:
            return EndRecord(self._identity, data.decode(), last)
        record = records.decode(data, EndRecord)
        if record.of != self._identity:
            raise RecordError(f"it is of {record.of}")
        if self._segments and last != record.end:
            raise RecordError(f"it tells of {record.end} bytes of lines, and there are {last}")
        return record

    def _measure(self) -> int:
        """Take back what a killed write left behind; return the offset after the last whole line."""
        while self._segments:
            last = self._segments[-1]
            try:
                last.recover()
            except (OSError, RecordError) as error:
                self._aside.tell(last.paths[0], str(error))
                last.size = 0
            if last.size:
                return last.end
            self._set_aside(self._segments.pop())
            if not self._segments:
                return last.start
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
