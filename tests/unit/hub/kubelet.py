"""A kubelet's log file in memory, for tests of what resumes from it: lines with times, read as the kubelet reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from trainplane.kube.containerlogs import nanoseconds
from trainplane.kube.testing.podlogs import stamp

SECOND = 1_000_000_000
START = 1_800_000_000 * SECOND


def line(moment: int, text: str) -> bytes:
    return stamp(moment) + b" " + text.encode()


@dataclass
class LogFile:
    lines: list[bytes] = field(default_factory=list)
    rotated: int = 0

    def read(self, since: str | None) -> list[bytes]:
        """Return what a request with `sinceTime` is answered: lines left out by their own times, in their order."""
        oldest = 0 if since is None else int(datetime.fromisoformat(since).timestamp()) * SECOND
        return [line for line in self.lines[self.rotated :] if (nanoseconds(line) or 0) >= oldest]
