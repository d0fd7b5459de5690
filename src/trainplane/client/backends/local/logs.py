"""What the containers of a job printed: one file, in the order in which it came.

    2026-11-15T05:11:08.123456Z node-1 epoch 3

One writer stamps the lines of all steps, so they are merged already, and a line is read once however often its pod was
made anew.
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Final

from trainplane.client.backends.local.moments import now, stamp
from trainplane.client.reading.lines import read_line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from datetime import datetime
    from pathlib import Path
    from typing import BinaryIO

    from trainplane.client.types.jobs import LogLine

LONGEST: Final = 1 << 20
"""Bytes after which a line without an end is written as one: a program that prints no newline must not fill memory."""

NEAR: Final = 4 << 20
"""Bytes at the end of a log that are looked at when a pod ended badly."""


class LogWriter:
    """Writes the lines of all steps."""

    def __init__(self, path: Path, clock: Callable[[], datetime] = now) -> None:
        """Append to a file."""
        self._file = path.open("ab", buffering=0)
        self._clock = clock
        self._begun: dict[str, bytes] = {}

    def write(self, step: str, stream: str, data: bytes) -> None:
        """Take what a container printed; `stream` tells containers of a step apart. A begun line waits for its end."""
        *whole, rest = (self._begun.pop(stream, b"") + data).split(b"\n")
        if len(rest) > LONGEST:
            whole, rest = [*whole, rest], b""
        if rest:
            self._begun[stream] = rest
        self._append(step, whole)

    def close_stream(self, step: str, stream: str) -> None:
        """Write what was begun: the container has ended."""
        rest = self._begun.pop(stream, b"")
        self._append(step, [rest] if rest else [])

    def _append(self, step: str, lines: list[bytes]) -> None:
        if lines:
            head = f"{stamp(self._clock())} {step} ".encode()
            self._file.write(b"".join(head + line.rstrip(b"\r") + b"\n" for line in lines))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class LogReader:
    """Reads lines as they come."""

    def __init__(self, path: Path, steps: Collection[str] | None, since: datetime | None = None) -> None:
        """Read a file that may not be there yet; `steps` are the wanted ones, None for all; none older than `since`."""
        self._path = path
        self._steps = steps
        self._since = since
        self._file: BinaryIO | None = None
        self._begun = b""

    def read(self) -> Iterator[LogLine]:
        """Yield the lines that came since the last time."""
        if self._file is None:
            try:
                self._file = self._path.open("rb")
            except FileNotFoundError:
                return
        while data := self._file.read(1 << 20):
            *whole, self._begun = (self._begun + data).split(b"\n")
            for line in whole:
                time, _, rest = line.partition(b" ")
                step, _, text = rest.partition(b" ")
                name = step.decode()
                if self._steps is not None and name not in self._steps:
                    continue
                read = read_line(name, time + b" " + text)
                if self._since is None or read.time is None or read.time >= self._since:
                    yield read

    def read_last(self, count: int) -> list[LogLine]:
        """Return the last so many lines of each step, in the order of time, and go on behind them."""
        kept: dict[str, deque[tuple[int, LogLine]]] = {}
        for number, line in enumerate(self.read()):
            kept.setdefault(line.step, deque(maxlen=count)).append((number, line))
        return [
            line for _, line in sorted((entry for lines in kept.values() for entry in lines), key=lambda one: one[0])
        ]

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def read_end(path: Path, step: str, count: int) -> list[str]:
    """Return the last lines of a step, of those that stand near the end of the file: a log may have gigabytes."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - NEAR))
            lines = file.read(NEAR).split(b"\n")
    except FileNotFoundError:
        return []
    parts = (line.split(b" ", 2) for line in (lines if size <= NEAR else lines[1:]))
    told = (part[2] for part in parts if len(part) == 3 and part[1] == step.encode())
    return [text.decode(errors="replace") for text in deque(told, maxlen=count)]
