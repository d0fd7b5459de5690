"""How far a reader is in the journal of one rank, and where it begins.

Everything here may run in a thread: it looks at a journal, and changes nothing of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.hub.logarchive.lines import NOTE, note
from trainplane.kube.containerlogs import nanoseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.hub.apiserver.logquery import LogQuery, Rank
    from trainplane.hub.logarchive.journal import Journal

CHUNK: Final = 1 << 16
"""Bytes that are read at once."""
_PROBE: Final = 1 << 11
_LINES: Final = 2000
"""Lines that are counted in one step: a millisecond or two."""
_STAMP_BYTES: Final = 64


class Cursor:
    """A place in a journal. It holds one block of lines at most, and of a longer line only the beginning.

    Args:
        rank: whose lines they are.
        journal: where they are.
        offset: where to begin; what went before it was read is told in a remark.
        stop: where to end.
        limit: bytes of a block.
    """

    def __init__(self, rank: Rank, journal: Journal, offset: int, stop: int, limit: int = CHUNK) -> None:
        self.rank = rank
        self.stop = stop
        self.time = 0
        """When the next line was printed, or one before it if that was later: the order of a rank's lines stays."""
        self._journal = journal
        self._offset = offset
        self._limit = limit
        self._lines: list[bytes] = []
        self._again: int | None = None

    @property
    def is_behind(self) -> bool:
        """Whether there is more to be read."""
        return self._offset < min(self.stop, self._journal.end)

    def block(self) -> bytes:
        """Return the next whole lines, about as many bytes as the limit; empty at the end."""
        if not self.is_behind:
            return b""
        lost = min(self.stop, self._journal.begin) - self._offset
        if lost > 0:
            self._offset += lost
            first = self._journal.read(self._offset, 1)[0][:_STAMP_BYTES]
            return note(first.removeprefix(NOTE), f"{lost} bytes of older lines are no longer kept") + b"\n"
        begin = self._offset
        data, self._offset = self._journal.read(begin, self._limit)
        if self._offset > self.stop and len(data) == self._offset - begin:  # the journal has grown meanwhile
            data, self._offset = data[: self.stop - begin], self.stop
        return data

    def look(self) -> bool:
        """Find the time of the next line; False at the end."""
        if not self._lines:
            before = self._offset
            data = self.block()
            if len(data) > self._limit:  # one long line: its text is read again when its turn comes
                self._again = before
                self._lines = [data[:_STAMP_BYTES]]
            elif data:
                self._lines = data[:-1].split(b"\n")[::-1]
        if self._lines:
            line = self._lines[-1][:_STAMP_BYTES].removeprefix(NOTE)
            self.time = max(self.time, nanoseconds(line) or 0)
        return bool(self._lines)

    def line(self) -> bytes:
        """Return the line that was looked at, with its newline."""
        line = self._lines.pop() + b"\n"
        if self._again is not None:
            line, _ = self._journal.read(self._again, self._limit)
            self._again = None
        return line


class Beginning:
    """Finds the offset from which a journal is shown; 0 is its beginning, whatever of that is still there."""

    def __init__(self, journal: Journal, query: LogQuery, now: int, stop: int) -> None:
        self.found = 0
        self._journal = journal
        self._query = query
        self._now = now
        self._stop = stop

    def search(self) -> Iterator[None]:
        """Iterate, a step at a time, until `found` is right."""
        since, lines = self._query.since_seconds, self._query.tail_lines
        if since is not None:
            yield from self._since(self._now - since * 1_000_000_000)
        if lines is not None and lines < self._stop - self.found:  # a line has a byte at least
            yield from self._tail(lines)

    def _tail(self, lines: int) -> Iterator[None]:
        """Count lines from the last on; remarks of ours are none."""
        first, last, count = self.found, self._stop, 0
        for number, (place, line) in enumerate(self._journal.backward()):
            if count >= lines or place < first:
                self.found = last
                return
            if place < self._stop:
                last = place
                count += not line.startswith(NOTE)
            if number % _LINES == 0:
                yield

    def _since(self, oldest: int) -> Iterator[None]:
        """Find the first line that is not older: times grow, but for a moment between two streams of one process."""
        journal, stop = self._journal, self._stop
        low, high, is_whole = journal.begin, stop, True
        while high - low > CHUNK:
            middle = (low + high) // 2
            times = _times(*journal.read(middle, _PROBE), is_whole=False)
            if next((time for _, time in times), oldest) < oldest:
                low, is_whole = middle, False
            else:
                high = middle
            yield
        while low < stop:
            data, after = journal.read(low, CHUNK)
            times = _times(data, after, is_whole=is_whole)
            place = next((place for place, time in times if time >= oldest), None)
            if place is not None:
                self.found = min(place, stop) if place > journal.begin else 0
                return
            if not data:
                break
            low, is_whole = after, True
            yield
        self.found = stop


def _times(data: bytes, after: int, *, is_whole: bool) -> Iterator[tuple[int, int]]:
    """Yield the lines that have a time: where they begin, and that time. The first may be the end of another line."""
    begin = 0 if is_whole else data.find(b"\n") + 1
    while begin < len(data):
        end = data.find(b"\n", begin)
        time = nanoseconds(data[begin : min(end, begin + _STAMP_BYTES)])
        if time is not None:
            yield after - len(data) + begin, time
        begin = end + 1
