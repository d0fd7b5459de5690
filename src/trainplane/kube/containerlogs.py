"""Logs of containers as a kubelet sends them, and how a broken stream of them goes on without gap or repeat.

A line is the time at which the container runtime took it, a space, and what the container printed:
`2026-11-15T05:11:08.123456789Z epoch 3`. What comes without a time is a remark of the kubelet's, never the container's.

A stream is resumed with `sinceTime`, which the API server cuts to whole seconds, so the resumed stream begins with
lines that were read already. Times alone cannot tell which: standard output and standard error are stamped before they
are ordered, so a later line may carry an earlier time, and two may carry the same. But the kubelet leaves lines out by
their own time and keeps their order; so the resumed stream begins with exactly those read lines that are not older than
`sinceTime`, in their order. `Resumption` drops these and nothing else. If it meets other lines instead, the log was
rotated while nobody read it, and what was rotated away is lost: `gap` says so.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from trainplane.kube.query import with_query
from trainplane.kube.resource import PODS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence

    from trainplane.kube.client import Client

LINE_BYTES: Final = 1 << 20
"""Bytes kept of a line. Progress bars and dumps without a newline grow without bound; nobody reads past the first."""

OVERLAP_SECONDS: Final = 1
"""Seconds before the newest line read from which a stream is resumed: more than two streams' stamps ever differ."""

STAMP: Final = rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)(?: |$)"
"""The time that a line begins with, as a pattern."""
_STAMP: Final = re.compile(STAMP)


def nanoseconds(line: bytes) -> int | None:
    """Return when a line was printed, in nanoseconds since 1970; None for a line without a time."""
    found = _STAMP.match(line)
    if found is None:
        return None
    second, fraction, zone = found.groups()
    whole = _seconds(second, zone)
    return None if whole is None else whole * 1_000_000_000 + int((fraction or b"0").ljust(9, b"0"))


def stamp_of(line: bytes) -> bytes:
    """Return the time that a line begins with, as it is written; empty for a line without one."""
    found = _STAMP.match(line)
    return line[: found.end()].rstrip() if found else b""


def text_of(line: bytes) -> bytes:
    """Return what was printed, without the time."""
    found = _STAMP.match(line)
    return line if found is None else line[found.end() :]


def since_time(newest: int) -> str:
    """Return the `sinceTime` to resume with after a line of that time was read."""
    return datetime.fromtimestamp(newest // 1_000_000_000 - OVERLAP_SECONDS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def resumed_from(newest: int) -> int:
    """Return the nanoseconds that `since_time` means: lines read that are not older come again."""
    return (newest // 1_000_000_000 - OVERLAP_SECONDS) * 1_000_000_000


@lru_cache(maxsize=1024)
def _seconds(second: bytes, zone: bytes) -> int | None:
    try:
        return int(datetime.fromisoformat((second + zone).decode()).timestamp())
    except ValueError:
        return None


class Splitter:
    """Cuts chunks into whole lines of at most `LINE_BYTES` each; what is longer loses its end."""

    def __init__(self, limit: int = LINE_BYTES) -> None:
        self._limit = limit
        self._part = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that a chunk completes, without their newlines."""
        pieces = chunk.split(b"\n")
        lines = []
        for piece in pieces[:-1]:
            if self._part:
                self._extend(piece)
                lines.append(bytes(self._part))
                self._part.clear()
            else:
                lines.append(piece[: self._limit])
        self._extend(pieces[-1])
        return lines

    def rest(self) -> bytes:
        """Return what came after the last newline: half a line, unless the container has ended."""
        return bytes(self._part)

    def _extend(self, piece: bytes) -> None:
        self._part += piece[: self._limit - len(self._part)]


class Resumption:
    """Drops from a resumed stream what is kept already.

    Attributes:
        gap: the stream does not join what is kept: lines between them may be lost.
    """

    def __init__(self, kept: Sequence[bytes]) -> None:
        self.gap = False
        self._kept = list(kept)
        self._seen: list[bytes] = []
        self._start = 0
        self._done = not self._kept

    def feed(self, lines: Iterable[bytes]) -> list[bytes]:
        """Return those lines that are new."""
        lines = list(lines)
        for place, line in enumerate(lines):
            if self._done:
                return [*self._take_seen(), *lines[place:]]
            self._seen.append(line)
            self._align(line)
        return self._take_seen() if self._done else []

    def _align(self, line: bytes) -> None:
        """Find where in the kept lines the stream begins: the first place at which all lines so far fit."""
        kept, seen = self._kept, self._seen
        before = len(seen) - 1
        if self._start + before < len(kept) and kept[self._start + before] == line:
            self._done = self._start + len(seen) == len(kept)
            return
        for start in range(self._start + 1, len(kept)):
            overlap = min(len(kept) - start, len(seen))
            if kept[start] == seen[0] and kept[start : start + overlap] == seen[:overlap]:
                self._start = start
                self._done = start + len(seen) >= len(kept)
                return
        self._start = len(kept)
        self._done = self.gap = True

    def _take_seen(self) -> list[bytes]:
        new = self._seen[len(self._kept) - self._start :]
        self._seen, self._kept, self._start = [], [], 0
        return new


class Batch(NamedTuple):
    """Lines that came together. `rest` is what the stream ended with after its last newline, on its last batch."""

    lines: list[bytes]
    rest: bytes = b""


async def read(
    client: Client,
    namespace: str,
    pod: str,
    container: str,
    *,
    follow: bool = False,
    previous: bool = False,
    since: str | None = None,
    tail: int | None = None,
) -> AsyncGenerator[Batch, None]:
    """Iterate over a container's log; the first batch may be empty and says that the stream is open.

    Remarks of the kubelet, which carry no time, are left out. Raises StreamError where the stream is cut; the half line
    that it may have ended in is then lost on purpose.
    """
    query = {"container": container, "timestamps": "true"}
    if follow:
        query["follow"] = "true"
    if previous:
        query["previous"] = "true"
    if since is not None:
        query["sinceTime"] = since
    if tail is not None:
        query["tailLines"] = str(tail)
    splitter = Splitter()
    path = with_query(PODS.path(namespace, pod, "log"), query)
    async with client.transport.stream(path, accept="*/*") as chunks:
        yield Batch([])
        async for chunk in chunks:
            lines = [line for line in splitter.feed(chunk) if nanoseconds(line) is not None]
            if lines:
                yield Batch(lines)
    rest = splitter.rest()
    if nanoseconds(rest) is not None:
        yield Batch([], rest)
