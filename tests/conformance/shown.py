"""Wanted differences that a case is there to show: one that it shows no more is a fault, too.

Where ours does as the reference does although we want it otherwise, nothing differs, and no comparison can tell. So
such cases say which differences they show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance.compare import Difference
from tests.conformance.differences import explain

if TYPE_CHECKING:
    from tests.conformance.drive import Run

SHOWN = "declared"
"""The place of a difference that is not there; its path says which, and in what kind of object it should be."""


def unshown(run: Run) -> list[Difference]:
    """Return what a case should have shown and did not; nothing of a case that did not come to its end."""
    case = run.case
    if len(run.verdicts) < len(case.setup) + len(case.steps):
        return []
    explained = [(explain(one), one.place.partition(" ")[0]) for one in run.differences]
    seen = {f"{declared.id} {kind}" for declared, kind in explained if declared}
    number = len(case.steps) - 1
    return [
        Difference(case, number, case.steps[number], SHOWN, name, "differs", "is as the reference")
        for name in case.shows
        if name not in seen
    ]
