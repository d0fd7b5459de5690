"""Judge what contenders were measured at: medians and spreads over repeats, ratios within a run, goals that can fail.

Contenders take turns, so the ratios of one repeat are of neighbours in time, and what the machine was like at that time
falls out of them. A goal is what ours has to the other side, as it was measured (`usual`), with `NOISE` to either side:
more than repeats differ by, and less than `SLOWDOWN`, so that a slowdown of ours by that much is never taken for noise.

CPU time and memory count however busy the machine is, unless others had most of it: then the caches are theirs, and
what usually goes out with the next write is too late for it. What a clock measured counts in those repeats alone in
which others left the machine to us: a contender that was held up by somebody else would be judged for it.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SLOWDOWN = 1.3
"""What must be found."""
NOISE = 1.25
"""How far a median of repeats may be from what is usual."""
DISTURBED = 0.1
"""Share of the machine above which others took so much of it that speeds cannot be compared."""
SWAMPED = 0.3
"""Share of the machine above which others had so much of it that CPU time cannot be compared either: with 0.4 to 0.5
the same work took 1.3 to 1.6 times as much."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one contender was measured at, once."""

    contender: str
    repeat: int
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Spread:
    """Some values of the same figure."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Sum values up; there must be one."""
        known = sorted(values)
        return cls(statistics.median(known), known[0], known[-1])


@dataclass(frozen=True, slots=True)
class Goal:
    """What a figure of ours has to be to another contender's.

    Attributes:
        name: of the ratio, as it is reported.
        figure: what is compared.
        other: with whom.
        usual: the ratio as it was measured where nothing is wrong.
        more_is_better: for speeds; what costs is better less.
        is_timed: whether the wall's clock measured it, which also counts what others took of the machine.
    """

    name: str
    figure: str
    other: str
    usual: float
    more_is_better: bool = False
    is_timed: bool = False

    @property
    def bound(self) -> float:
        """The worst ratio that is still noise."""
        return self.usual / NOISE if self.more_is_better else self.usual * NOISE

    def ratio(self, runs: Sequence[Run], ours: str = "ours") -> Spread | None:
        """Return the ratio over the repeats that count; None if none does."""
        by_turn = {(run.contender, run.repeat): run.figures for run in runs}
        values = []
        for (contender, repeat), mine in by_turn.items():
            theirs = by_turn.get((self.other, repeat))
            if contender != ours or theirs is None or _taken(mine, theirs) > (DISTURBED if self.is_timed else SWAMPED):
                continue
            values.append(mine[self.figure] / theirs[self.figure])
        return Spread.of(values) if values else None

    def fault(self, runs: Sequence[Run], ours: str = "ours") -> str | None:
        """Return in words what is wrong; None if the goal is reached, or cannot be judged in these runs."""
        ratio = self.ratio(runs, ours)
        if ratio is None or (ratio.median >= self.bound if self.more_is_better else ratio.median <= self.bound):
            return None
        side = "below" if self.more_is_better else "above"
        return (
            f"{self.name}: {self.figure} of ours is {ratio.median:.3f} of {self.other}'s "
            f"({ratio.least:.3f} to {ratio.most:.3f}), {side} {self.bound:.3f}: usual is {self.usual:.3f}"
        )


def faults(goals: Iterable[Goal], runs: Sequence[Run], ours: str = "ours") -> list[str]:
    """Return what is wrong, in words; nothing if every goal that can be judged is reached."""
    return [fault for goal in goals if (fault := goal.fault(runs, ours)) is not None]


def spread(runs: Iterable[Run], contender: str, figure: str) -> Spread:
    """Return a figure of a contender over its repeats."""
    return Spread.of(run.figures[figure] for run in runs if run.contender == contender)


def _taken(*figures: Mapping[str, float]) -> float:
    """Return the largest share of the machine that others had in any of these; none is known of who did not look."""
    return max(one.get("others_share", 0.0) for one in figures)
