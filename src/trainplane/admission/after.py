"""A TrainJob that begins after another: its gate, and what must be true of it. See `lifecycle.after`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.objectname import is_train_job_name
from trainplane.lifecycle.after import gated
from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Tree

_AT: Final = f"metadata.annotations[{names.ANNOTATION_AFTER}]"


def with_gate(new: Tree, old: Tree | None) -> Tree:
    """Return a new TrainJob with the gate that keeps it out of its queue.

    Kueue lets gates be set at creation alone. A worker's copy has none: its hub waited.
    """
    annotations = trees.get(new, "metadata", "annotations")
    if old is not None or not isinstance(annotations, dict) or not annotations.get(names.ANNOTATION_AFTER):
        return new
    if not _queue(new) or _is_copy(new) or not all(isinstance(text, str) for text in annotations.values()):
        return new
    gates = gated(annotations)
    if gates == annotations.get(names.ANNOTATION_ADMISSION_GATES):
        return new
    return trees.put(new, "metadata", "annotations", names.ANNOTATION_ADMISSION_GATES, value=gates)  # type: ignore[no-any-return] # a tree stays one


def judge_after(new: Tree) -> Iterator[Finding]:
    """Yield what keeps a new TrainJob from ever beginning after another."""
    name = trees.get(new, "metadata", "annotations", names.ANNOTATION_AFTER)
    if name is None or _is_copy(new):
        return
    own = trees.get(new, "metadata", "name")
    if not is_train_job_name(name):
        yield Finding(_AT, "must be the name of a TrainJob in this namespace")
    elif name == own:
        yield Finding(_AT, f"names this TrainJob itself ({own}): name the one that must be complete before it")
    if not _queue(new):
        yield Finding(
            _AT,
            f"needs a queue, because a gate of Kueue's holds the TrainJob back: set the label {names.LABEL_QUEUE}, or "
            "take the annotation away and create this TrainJob when the other one is complete",
        )


def _queue(job: Tree) -> Any:
    return trees.get(job, "metadata", "labels", names.LABEL_QUEUE)


def _is_copy(job: Tree) -> bool:
    """Return whether MultiKueue made this one on a worker."""
    return bool(trees.get(job, "metadata", "labels", names.LABEL_MULTIKUEUE_ORIGIN))
