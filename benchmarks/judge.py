"""Judge what contenders were measured at: medians and spreads over repeats, ratios within a run, goals that can fail.

Contenders take turns, so the ratios of one repeat are of neighbours in time, and what the machine was like at that time
falls out of them. A goal is what ours has to the other side, as it was measured (`usual`), with `NOISE` to either side:
more than repeats differ by, and less than `SLOWDOWN`, so that a slowdown of ours by that much is never taken for noise.

CPU time and memory count however busy the machine is, unless others had most of it: then the caches are theirs, and
what usually goes out with the next write is too late for it. What a clock measured counts in those repeats alone in
which others left the machine to us: a contender that was held up by somebody else would be judged for it.

CPU time of a second or two is worse: whoever shares a core or its caches for that long makes it dearer by half, and no
count of the machine shows it. It only ever gets dearer, so there the least of each side's turns is compared.
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
        by_least: whether the least of each side's turns is compared, where repeats of a second or two are too short for
            a median of their ratios.
    """

    name: str
    figure: str
    other: str
    usual: float
    more_is_better: bool = False
    is_timed: bool = False
    by_least: bool = False

    @property
    def bound(self) -> float:
        """The worst ratio that is still noise."""
        return self.usual / NOISE if self.more_is_better else self.usual * NOISE

    def ratio(self, runs: Sequence[Run], ours: str = "ours") -> Spread | None:
        """Return the ratio over the repeats that count; None if none does."""
        pairs = self._pairs(runs, ours)
        return Spread.of(mine / theirs for mine, theirs in pairs) if pairs else None

    def judged(self, runs: Sequence[Run], ours: str = "ours") -> float | None:
        """Return the one ratio that the goal is about; None if no repeat counts."""
        pairs = self._pairs(runs, ours)
        if not pairs:
            return None
        if self.by_least:
            return min(mine for mine, _ in pairs) / min(theirs for _, theirs in pairs)
        return statistics.median(mine / theirs for mine, theirs in pairs)

    def _pairs(self, runs: Sequence[Run], ours: str) -> list[tuple[float, float]]:
        """Return ours and theirs of the repeats that count."""
        by_turn = {(run.contender, run.repeat): run.figures for run in runs}
        most = DISTURBED if self.is_timed else SWAMPED
        return [
            (mine[self.figure], theirs[self.figure])
            for (contender, repeat), mine in by_turn.items()
            if contender == ours
            and (theirs := by_turn.get((self.other, repeat))) is not None
            and _taken(mine, theirs) <= most
        ]

    def fault(self, runs: Sequence[Run], ours: str = "ours") -> str | None:
        """Return in words what is wrong; None if the goal is reached, or cannot be judged in these runs."""
        ratio, judged = self.ratio(runs, ours), self.judged(runs, ours)
        if ratio is None or judged is None:
            return None
        if judged >= self.bound if self.more_is_better else judged <= self.bound:
            return None
        side = "below" if self.more_is_better else "above"
        return (
            f"{self.name}: {self.figure} of ours is {judged:.3f} of {self.other}'s "
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
