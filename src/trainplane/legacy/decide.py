"""What follows from one look at a job of an older kind, whichever kind it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import tree as trees
from trainplane.api.legacy.kinds import MPI
from trainplane.legacy import training
from trainplane.legacy.decision import Decision
from trainplane.legacy.mpi import decide as mpi

if TYPE_CHECKING:
    from trainplane.api.legacy.kinds import Kind
    from trainplane.api.tree import Tree
    from trainplane.legacy.decision import Observed, Settings


def decide(kind: Kind, seen: Observed, settings: Settings) -> Decision:
    """Return what follows; nothing for a job that is another's to run, or is being deleted."""
    if trees.get(seen.job, "metadata", "deletionTimestamp") is not None or not is_ours(kind, seen.job, settings):
        return Decision()
    return mpi.decide(kind, seen, settings) if kind is MPI else training.decide(kind, seen, settings)


def is_ours(kind: Kind, job: Tree, settings: Settings) -> bool:
    """Return whether nobody else manages a job: MultiKueue runs the ones that name it on another cluster."""
    manager = trees.get(job, "spec", "runPolicy", "managedBy")
    return not settings.job_managed_by or manager in (None, kind.managed_by)
