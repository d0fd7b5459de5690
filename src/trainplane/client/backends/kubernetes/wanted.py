"""Which lines of a TrainJob's log are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime

    from trainplane.client.types.jobs import LogLine


@dataclass(frozen=True)
class Wanted:
    """What is asked for."""

    steps: frozenset[str] | None = None
    """None: all."""
    tail: int | None = None
    """Only so many last lines of each step."""
    since: datetime | None = None
    """Only lines that are not older."""
    previous: bool = False
    """Of each step the run before the present one; nothing where there was none."""

    def has(self, step: str) -> bool:
        """Return whether a step is asked for."""
        return self.steps is None or step in self.steps

    def has_line(self, line: LogLine) -> bool:
        """Return whether a line is new enough: kubelets and hubs cut to the second."""
        return self.since is None or line.time is None or line.time >= self.since


ALL: Final = Wanted()
