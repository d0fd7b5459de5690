"""A TrainJob and its runtime in the making: what each part of an older job adds to, and the notes on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.objectname import is_object_name
from trainplane.legacy.migrate.outcome import Note, RefusedError
from trainplane.legacy.migrate.shipped import run_policy
from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.api.legacy.kinds import Kind
    from trainplane.api.tree import Tree
    from trainplane.legacy.migrate.outcome import Outcome

PATCH_MANAGER: Final = "trainplane.dev/migrate"
"""Who says what a TrainJob changes in a shipped runtime."""
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_OF_THE_SERVER: Final = frozenset(
    {"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid", "deletionTimestamp"}
)
_KEPT: Final = frozenset({"name", "namespace", "labels", "annotations"})


@dataclass(slots=True)
class Draft:
    """What there is of the result so far."""

    kind: Kind
    name: str
    namespace: str
    framework: str
    """The value of the runtime's label, by which TensorFlow and Paddle are chosen and the SDK lists runtimes."""
    metadata: Tree = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    spec: Tree = field(default_factory=dict)
    """Fields of the TrainJob's spec beside runtimeRef and trainer."""
    trainer: Tree = field(default_factory=dict)
    shipped: str = ""
    """The shipped runtime that serves the framework."""
    own: bool = False
    """Whether something is said that no shipped runtime and no patch of one says."""
    annotations: Tree = field(default_factory=dict)
    """Of the runtime: settings of frameworks."""
    policy: Tree = field(default_factory=dict)
    """mlPolicy."""
    gang: Tree = field(default_factory=dict)
    """podGroupPolicy."""
    max_restarts: int = 0
    """`runPolicy.failurePolicy.maxRestarts` of the runtime."""
    template: Tree = field(default_factory=dict)
    """Labels and annotations of the JobSet."""
    jobset: Tree = field(default_factory=dict)
    """Fields of the JobSet's spec beside its jobs."""
    jobs: list[Tree] = field(default_factory=list)
    patch: Tree = field(default_factory=dict)
    """What a TrainJob on the shipped runtime changes in the job that trains."""
    order: tuple[str, ...] = ()
    """Names of the jobs in the order of the older job's replica types: pods are compared in this order."""

    def note(self, path: str, outcome: Outcome, text: str = "", *, alters: Iterable[str] = ()) -> None:
        """Note what became of a field."""
        self.notes.append(Note(path, outcome, text, frozenset(alters)))

    def put(self, path: str, where: str = "") -> None:
        """Note that a field says the same as before, elsewhere."""
        self.note(path, "carried", where)

    def needs_runtime(self, path: str, where: str = "") -> None:
        """Note that a field is carried over by a runtime of the job's own."""
        self.own = True
        self.note(path, "carried", where or "in the TrainingRuntime")

    def trainjob(self) -> Tree:
        """Return the TrainJob."""
        reference = {
            "apiGroup": names.GROUP,
            "kind": names.TRAINING_RUNTIME if self.own else names.CLUSTER_TRAINING_RUNTIME,
            "name": self.name if self.own else self.shipped,
        }
        spec: Tree = {"runtimeRef": reference}
        if self.trainer:
            spec["trainer"] = self.trainer
        if self.patch and not self.own:
            spec["runtimePatches"] = [_patch(self.patch)]
        return {
            "apiVersion": names.API_VERSION,
            "kind": names.TRAIN_JOB,
            "metadata": self.metadata,
            "spec": spec | self.spec,
        }

    def runtime(self) -> Tree | None:
        """Return the runtime of the job's own, or None if the TrainJob needs none."""
        if not self.own:
            return None
        metadata: Tree = {"name": self.name, "namespace": self.namespace}
        metadata["labels"] = {names.LABEL_FRAMEWORK: self.framework}
        if self.annotations:
            metadata["annotations"] = self.annotations
        template: Tree = {"spec": {**self.jobset, "replicatedJobs": self.jobs}}
        if self.template:
            template = {"metadata": self.template, **template}
        spec: Tree = {"mlPolicy": self.policy, "template": template}
        if self.gang:
            spec["podGroupPolicy"] = self.gang
        if self.max_restarts:
            spec["runPolicy"] = run_policy(self.max_restarts)
        if not self.namespace:
            del metadata["namespace"]
        return {"apiVersion": names.API_VERSION, "kind": names.TRAINING_RUNTIME, "metadata": metadata, "spec": spec}


def begin(kind: Kind, source: Tree, *, framework: str, shipped: str = "") -> Draft:
    """Return the draft of a job: its name, labels and annotations.

    Raises:
        RefusedError: it has no name, or a namespace that is none.
    """
    metadata = trees.fields(source, "metadata")
    name, namespace = trees.text(metadata, "name"), trees.text(metadata, "namespace") or ""
    if name is None:
        problem = "must be there: pods are addressed by it. Write one in place of generateName"
        raise RefusedError([Finding("metadata.name", problem, "Required")])
    if namespace and not is_object_name(namespace):
        raise RefusedError([Finding("metadata.namespace", "is no name of a namespace")])
    kept: dict[str, Any] = {key: value for key, value in metadata.items() if key in _KEPT}
    draft = Draft(kind, name, namespace, framework, metadata=kept, shipped=shipped)
    annotations = {key: value for key, value in trees.fields(kept, "annotations").items() if key != _LAST_APPLIED}
    kept.pop("annotations", None)
    if annotations:
        kept["annotations"] = annotations
    for key in sorted(kept.keys() - {"name", "namespace"}):
        draft.put(f"metadata.{key}")
    for key in sorted(metadata.keys() - _KEPT - _OF_THE_SERVER):
        draft.note(f"metadata.{key}", "left out", "the TrainJob is an object of its own: set it there if it is wanted")
    return draft


def _patch(job: Tree) -> Tree:
    jobs = [{"name": names.JOB_NODE, "template": job}]
    return {"manager": PATCH_MANAGER, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}
