"""What a cluster has of older jobs, what would become of each, and in which order to go.

    first      runtimes of the older shape: TrainJobs name them
    waiting    held back, queued or not begun: nothing is lost by moving them
    running    let them end: what replaces them begins anew, or at the last checkpoint that the program finds
    finished   nothing to move; what stands there may be deleted when nobody reads it any more
    stays      refused: served as before, until somebody changes it

Nothing is written. Kueue's queues are noted: a job in a queue leaves it when it is deleted, and its TrainJob lines up
behind the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.legacy import names as old
from trainplane.api.legacy import v2alpha1
from trainplane.legacy.migrate.convert import migrate
from trainplane.legacy.migrate.outcome import Migration, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.render.findings import Finding

Turn: TypeAlias = Literal["first", "waiting", "running", "finished", "stays"]
TURNS: Final[tuple[Turn, ...]] = ("first", "waiting", "running", "finished", "stays")
_OVER: Final = frozenset({old.SUCCEEDED, old.FAILED, names.COMPLETE})


@dataclass(frozen=True, slots=True)
class Entry:
    """One object, and what would become of it."""

    kind: str
    namespace: str
    name: str
    turn: Turn
    queue: str = ""
    """The queue of Kueue's that it is in."""
    runtime: str = ""
    """The shipped runtime that its TrainJob would run on; empty if it would have one of its own, or names one."""
    changes: tuple[str, ...] = ()
    """Its fields that would say something else, or nothing."""
    refused: tuple[Finding, ...] = ()


def entry_of(source: Any, *, gang: str = "", initializers: str = names.INITIALIZERS_IMAGE) -> Entry:
    """Return what would become of an object; whatever it is, that is said and nothing raised."""
    kind, namespace, name = (
        trees.text(source, *path) or "" for path in (("kind",), ("metadata", "namespace"), ("metadata", "name"))
    )
    queue = trees.text(source, "metadata", "labels", names.LABEL_QUEUE) or ""
    try:
        moved = migrate(source, gang=gang, initializers=initializers)
    except RefusedError as error:
        return Entry(kind, namespace, name, "stays", queue, refused=error.findings)
    changes = tuple(sorted({note.field for note in moved.notes if note.outcome != "carried"}))
    return Entry(kind, namespace, name, _turn(source), queue, _shipped(moved), changes)


def ordered(entries: Iterable[Entry]) -> list[Entry]:
    """Return entries in the order to go."""
    return sorted(entries, key=lambda one: (TURNS.index(one.turn), one.namespace, one.kind, one.name))


def _turn(source: Any) -> Turn:
    if source.get("apiVersion") == v2alpha1.API_VERSION and source.get("kind") != names.TRAIN_JOB:
        return "first"
    true = {one.get("type") for one in trees.entries(source, "status", "conditions") if one.get("status") == "True"}
    if true & _OVER:
        return "finished"
    held = trees.get(source, "spec", "runPolicy", "suspend") or trees.get(source, "spec", "suspend")
    begun = old.RUNNING in true or old.RESTARTING in true or trees.text(source, "status", "state") == v2alpha1.RUNNING
    return "running" if begun and held is not True else "waiting"


def _shipped(moved: Migration) -> str:
    reference = trees.fields(moved.objects[-1], "spec", "runtimeRef")
    own = reference.get("kind") == names.TRAINING_RUNTIME
    return "" if own else trees.text(reference, "name") or ""
