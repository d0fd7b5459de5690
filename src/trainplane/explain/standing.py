"""What a TrainJob's document says of itself in a word: which conditions hold, and who runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.api import tree as trees

if TYPE_CHECKING:
    from trainplane.api.tree import Tree


def holding(job: Tree, kind: str) -> Tree | None:
    """Return a condition of a TrainJob if it holds."""
    found = trees.get(job, "status", "conditions", ("type", kind))
    return found if isinstance(found, dict) and found.get("status") == "True" else None


def is_dispatched(job: Tree) -> bool:
    """Return whether MultiKueue runs a TrainJob, on another cluster than it was submitted to."""
    return bool(trees.get(job, "spec", "managedBy") == names.MANAGED_BY_MULTIKUEUE)
