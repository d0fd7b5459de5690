"""A TrainJob once more: what its user wrote, without what the cluster made of it.

A TrainJob that is over never runs again, and `spec.trainer` of one that runs cannot change. Both are got round in the
same way: the document is submitted again, under its name or another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.client.errors import RefusedError
from trainplane.lifecycle.conditions import conditions_of, is_finished

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

_SERVERS: Final = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
"""Annotations that describe the object that was."""


def anew(job: Tree, name: str | None = None) -> Tree:
    """Return the document to create a TrainJob from that exists or did: its own name if none is given.

    What Kueue wrote is Kueue's to write again: its patches, and in a queue whether the TrainJob is suspended.
    """
    metadata: dict[str, Any] = {"name": name or trees.get(job, "metadata", "name")}
    labels = trees.get(job, "metadata", "labels") or {}
    annotations = {k: v for k, v in (trees.get(job, "metadata", "annotations") or {}).items() if k not in _SERVERS}
    metadata |= {"labels": labels} if labels else {}
    metadata |= {"annotations": annotations} if annotations else {}
    spec = dict(trees.get(job, "spec") or {})
    patches = [
        entry for entry in spec.pop("runtimePatches", None) or () if entry["manager"] != names.PATCH_MANAGER_KUEUE
    ]
    if patches:
        spec["runtimePatches"] = patches
    if names.LABEL_QUEUE in labels:
        spec.pop("suspend", None)
    return {"apiVersion": names.API_VERSION, "kind": names.TRAIN_JOB, "metadata": metadata, "spec": spec}


def retried(job: Tree, name: str) -> Tree:
    """Return the document of another attempt at a TrainJob; it says which was the first, and it is not held."""
    document = anew(job, name)
    document["spec"].pop("suspend", None)
    first = first_of(job)
    if name != first:
        document["metadata"]["annotations"] = {
            **document["metadata"].get("annotations", {}),
            names.ANNOTATION_RETRY_OF: first,
        }
    return document


def first_of(job: Tree) -> str:
    """Return the TrainJob that this one is another attempt at, or is itself."""
    name = str(trees.get(job, "metadata", "name"))
    first = trees.text(job, "metadata", "annotations", names.ANNOTATION_RETRY_OF)
    return first if first and attempt_of(name, first) else name


def attempt_of(name: str, first: str) -> int:
    """Return which attempt a name says it is: 3 for `fit-3`, given `fit`; 0 where it does not say so."""
    number = name.removeprefix(f"{first}-")
    return int(number) if number != name and number.isascii() and number.isdigit() and len(number) < 6 else 0


def next_attempt(job: Tree) -> int:
    """Return the number of the attempt after this one: 2 after the first."""
    return max(attempt_of(str(trees.get(job, "metadata", "name")), first_of(job)), 1) + 1


def refuse_unfinished(job: Tree) -> None:
    """Refuse another attempt at a TrainJob that is not over.

    Raises:
        RefusedError: it is not.
    """
    if not is_finished(conditions_of(job)):
        raise RefusedError(
            f"TrainJob {trees.get(job, 'metadata', 'name')} is not over and cannot be retried: wait for its end, or "
            "delete it"
        )
