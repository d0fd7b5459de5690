"""The hunt for a planted fault: cases of its subject first, in small batches, until conformance finds a difference.

The comparison is conformance's own: our operator on its API server against the recorded answers, and only a
difference that nothing declares counts. An operator that makes no JobSet at all any more is found too.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.conformance.cases import Await
from tests.conformance.differences import explain
from tests.conformance.drive import Drive
from tests.conformance.recording import Replayed
from tests.conformance.shown import unshown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.conformance.cases import Case
    from tests.conformance.compare import Difference
    from tests.conformance.drive import Run
    from tests.conformance.recording import Recordings
    from tests.conformance.side import Side

log = logging.getLogger(__name__)

PATIENCE, CONDITION_PATIENCE, STATUS_PATIENCE = 1.5, 4.0, 8.0
"""Seconds for which a difference must stand, beside the fences that our operator has passed by then: a condition may
wait one second for the next word of the status to go with, any other word five."""
FENCE_SECONDS = 10.0
"""How long an operator with a fault may take to reach a TrainJob; more means that it does not work."""


EVERYWHERE = "operator"
"""The place of what is wrong with all cases at once."""


@dataclass(frozen=True)
class Found:
    """What gave a fault away."""

    case: str
    place: str


def is_settled(found: Difference) -> bool:
    """Return whether a difference gives nothing away: it is declared, or news, which may come half a minute late."""
    return found.place.startswith("News ") or explain(found) is not None


def patience(found: Difference) -> float:
    """Return for how many seconds a difference must stand to be one: longer if it follows from what time brought."""
    if isinstance(found.step, Await):
        return STATUS_PATIENCE
    if not (found.place.startswith("TrainJob ") and found.path.startswith("status")):
        return PATIENCE
    return CONDITION_PATIENCE if found.path.startswith("status.conditions") else STATUS_PATIENCE


def faults_in(run: Run) -> list[Difference]:
    """Return what gives a fault away in a case."""
    return [*(one for one in run.differences if not is_settled(one)), *unshown(run)]


class Hunter:
    """Our operator on its API server, and the recorded answers of the reference."""

    def __init__(self, ours: Side, recordings: Recordings, *, waits: Callable[[Difference], float] = patience) -> None:
        """Take the side of our operator, and recordings that have every case that is hunted with."""
        ours.fence_seconds = FENCE_SECONDS
        self._drive = Drive(
            Replayed(recordings),
            ours,
            is_expected=is_settled,
            patience=waits,
            ends_with=lambda found: not is_settled(found),
        )

    def close(self) -> None:
        """Close what is open."""
        self._drive.close()

    def hunt(self, cases: Sequence[Case]) -> Found | None:
        """Return the first difference that nothing declares, or None if all cases are as they should."""
        try:
            runs = self._drive.run(cases)
        except AssertionError as error:
            return Found(cases[0].id, f"{EVERYWHERE}: {str(error)[:200]}")
        found = sorted((one for run in runs for one in faults_in(run)), key=patience)
        if not found:
            return None
        log.info("%s", found[0])
        return Found(found[0].case.id, f"{found[0].place} {found[0].path}".strip())
