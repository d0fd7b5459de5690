"""Whether a TrainJob is over, and how. Pure.

A TrainJob is over with the first of Complete and Failed that is True, and stays so. The operator has conditions as
structs, who reads documents has them as trees; both are judged here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from trainplane.api import names
from trainplane.api import tree as trees

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.api.meta import Condition
    from trainplane.api.tree import Tree

ENDS: Final = (names.COMPLETE, names.FAILED)
"""The conditions with which a TrainJob is over; the first counts where both are True."""

_STOPS: Final = frozenset(
    {
        names.REASON_DEADLINE_EXCEEDED,
        names.REASON_EARLIER_FAILED,
        names.REASON_SNAPSHOT_CHANGED,
        names.REASON_SNAPSHOT_MISSING,
    }
)


class Stated(Protocol):
    """A condition as far as it is asked here."""

    @property
    def type(self) -> str:
        """What it is about."""

    @property
    def status(self) -> str:
        """True, False or Unknown."""


Shown = TypeVar("Shown", bound="Stated | Tree")


def conditions_of(job: Tree) -> list[Tree]:
    """Return the conditions of a TrainJob's document."""
    return trees.entries(job, "status", "conditions")


def finish(conditions: Iterable[Shown]) -> Shown | None:
    """Return the condition with which a TrainJob is over; None if it is not."""
    failed = None
    for condition in conditions:
        kind = _true_type(condition)
        if kind == names.COMPLETE:
            return condition
        if kind == names.FAILED:
            failed = condition
    return failed


def is_finished(conditions: Iterable[Stated | Tree]) -> bool:
    """Return whether a TrainJob is over, for better or worse."""
    return finish(conditions) is not None


def is_stopped(conditions: Iterable[Condition]) -> bool:
    """Return whether we failed the TrainJob, and not its JobSet: whose pods, if it has any, are to go."""
    return any(one.type == names.FAILED and one.status == "True" and one.reason in _STOPS for one in conditions)


def _true_type(condition: Stated | Tree) -> object:
    if isinstance(condition, dict):
        return condition.get("type") if condition.get("status") == "True" else None
    return condition.type if condition.status == "True" else None
