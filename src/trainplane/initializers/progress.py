"""How far it is: bytes, files, rate and the time left; a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.initializers.console import Console

_BAR_SECONDS: Final = 0.2
_LINE_SECONDS: Final = 10.0
_WIDTH: Final = 24
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def readable(count: float) -> str:
    """Return bytes in the largest unit that leaves a number over one."""
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count /= 1024
        unit += 1
    return f"{count:.0f} {_UNITS[unit]}" if unit == 0 else f"{count:.1f} {_UNITS[unit]}"


def duration(seconds: float) -> str:
    """Return a time left: `12 s`, `3 min 20 s`, `2 h 05 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


class Progress:
    """Counts what arrives, and says so not more often than a reader wants."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic, verb: str = "fetched") -> None:
        self._console = console
        self._verb = verb
        self._clock = clock
        self._interval = _BAR_SECONDS if console.on_terminal else _LINE_SECONDS
        self.total: int | None = 0
        """Bytes of all files; None if some source does not say."""
        self.files = 0
        self.bytes_there = 0
        self.files_there = 0
        self.fetched = 0
        """Bytes that came over the network in this run, or went."""
        self._start = self._said = clock()
        self._troubled = -_LINE_SECONDS

    def begin(self, total: int | None, files: int) -> None:
        """Set what there is to come; time counts from here."""
        self.total, self.files = total, files
        self.bytes_there = self.files_there = self.fetched = 0
        self._start = self._said = self._clock()

    def have(self, count: int) -> None:
        """Count bytes that an earlier run left."""
        self.bytes_there += count

    def add(self, count: int) -> None:
        """Count bytes that arrived; a negative number takes back what must come again."""
        self.bytes_there += count
        self.fetched += max(count, 0)
        self.tick()

    def add_file(self) -> None:
        """Count a file that is whole."""
        self.files_there += 1

    def tick(self) -> None:
        """Say where it stands, if it is time to."""
        if self._clock() - self._said >= self._interval:
            self._said = self._clock()
            (self._console.bar if self._console.on_terminal else self._console.say)(self.line())

    def trouble(self, reason: str) -> None:
        """Say why it does not get on, not more often than lines are said."""
        if self._clock() - self._troubled >= _LINE_SECONDS:
            self._troubled = self._clock()
            if self._console.on_terminal:
                self._console.bar("")
            self._console.say(f"{reason}; trying again")

    def end(self) -> None:
        """Say what it came to."""
        if self._console.on_terminal:
            self._console.bar("")
        seconds = max(self._clock() - self._start, 1e-9)
        self._console.say(
            f"{self.files_there} files, {readable(self.bytes_there)}; {self._verb} {readable(self.fetched)} in "
            f"{duration(seconds)} ({readable(self.fetched / seconds)}/s)"
        )

    def line(self) -> str:
        """Return where it stands."""
        rate = self.fetched / max(self._clock() - self._start, 1e-9)
        files = f"{self.files_there}/{self.files} files"
        if self.total is None:
            return f"{readable(self.bytes_there)}, {files}, {readable(rate)}/s"
        share = self.bytes_there / self.total if self.total else 1.0
        left = f", {duration((self.total - self.bytes_there) / rate)} left" if rate > 0 else ""
        bar = ""
        if self._console.on_terminal:
            full = round(_WIDTH * min(share, 1.0))
            bar = f"[{'#' * full}{'.' * (_WIDTH - full)}] "
        there = f"{readable(self.bytes_there)} of {readable(self.total)}"
        return f"{bar}{share:.0%} {there}, {files}, {readable(rate)}/s{left}"
