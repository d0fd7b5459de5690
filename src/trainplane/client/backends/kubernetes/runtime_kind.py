"""A runtime by its name alone: the namespace's, or the cluster's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.api import tree as trees

if TYPE_CHECKING:
    from trainplane.api.tree import Tree


def with_kind(job: Tree, kind: str) -> Tree:
    """Return a TrainJob whose runtime is of a kind."""
    return trees.put(job, "spec", "runtimeRef", "kind", value=kind)  # type: ignore[no-any-return] # a tree stays one


def with_open_kind(job: Tree) -> Tree:
    """Return a TrainJob whose runtime may be the namespace's or the cluster's, if it does not say which.

    Our operator's admission puts the namespace's there if there is one, and takes the annotation off. An operator that
    does not know the annotation takes what the kind says.
    """
    if names_kind(job):
        return job
    annotations = {**(trees.get(job, "metadata", "annotations") or {})}
    annotations[names.ANNOTATION_RUNTIME_KIND] = names.RUNTIME_KIND_ANY
    marked = trees.put(job, "metadata", "annotations", value=annotations)
    return with_kind(marked, names.CLUSTER_TRAINING_RUNTIME)


def names_kind(job: Tree) -> bool:
    """Return whether a TrainJob says of which kind its runtime is."""
    return bool(trees.get(job, "spec", "runtimeRef", "kind"))
