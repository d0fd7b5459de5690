"""A TrainJob and its runtime, rendered by the operator's own pipeline, as what runs here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.api import document, names
from trainplane.api import tree as trees
from trainplane.api.errors import DecodeError
from trainplane.api.runtime import ClusterTrainingRuntime, TrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.client.backends.local import events
from trainplane.client.backends.local.pods import read_jobset
from trainplane.client.errors import RefusedError
from trainplane.render.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainplane.api.tree import Tree
    from trainplane.client.backends.local.pods import LocalJobSet
    from trainplane.lifecycle.events import EventContent
    from trainplane.render.plan import CreateOnce, Runtime

_POD_FIELDS: Final = {
    "affinity": "there is one machine",
    "nodeSelector": "there is one machine",
    "priorityClassName": "jobs here do not give way to each other",
    "runtimeClassName": "the backend's own settings choose the runtime",
    "schedulerName": "nothing is scheduled",
    "schedulingGates": "nothing is scheduled",
    "serviceAccountName": "there is no cluster to speak to",
    "tolerations": "there is one machine",
    "topologySpreadConstraints": "there is one machine",
}
"""Fields of a pod that a machine without a cluster has no use for, and why; they change no result."""


@dataclass(frozen=True)
class Rendered:
    """What a TrainJob becomes on this machine."""

    plan: LocalJobSet
    objects: tuple[Tree, ...]
    """ConfigMaps and Secrets that its pods refer to."""
    kept: tuple[CreateOnce, ...]
    """What is drawn once."""
    ignored: tuple[EventContent, ...]
    """What has no effect here."""


def read_runtime(runtime: Tree) -> Runtime:
    """Return a runtime of either kind, decoded.

    Raises:
        RefusedError: it is none.
    """
    try:
        if runtime.get("kind") == names.TRAINING_RUNTIME:
            return document.read(runtime, TrainingRuntime)
        return document.read(runtime, ClusterTrainingRuntime)
    except DecodeError as error:
        raise RefusedError(f"runtime {trees.get(runtime, 'metadata', 'name')}: {error}") from error


def render_jobset(job: Tree, runtime: Runtime) -> Tree:
    """Return the JobSet of a TrainJob that was admitted."""
    jobset: Tree = Pipeline.default().render(document.read(job, TrainJob), runtime).jobset.tree
    return jobset


def render(job: Tree, runtime: Tree) -> Rendered:
    """Return what a TrainJob becomes that was admitted (`admission`)."""
    job_document = document.read(job, TrainJob)
    rendering = Pipeline.default().render(job_document, read_runtime(runtime))
    *beside, jobset = (entry.tree for entry in rendering.objects)
    return Rendered(
        plan=read_jobset(jobset, job_document.view.metadata.uid),
        objects=tuple(entry for entry in beside if entry["kind"] in {"ConfigMap", "Secret"}),
        kept=rendering.kept,
        ignored=tuple(_ignored(job, jobset, beside)),
    )


def _ignored(job: Tree, jobset: Tree, beside: Sequence[Tree]) -> Iterator[EventContent]:
    for entry in jobset["spec"].get("replicatedJobs") or ():
        spec = trees.get(entry, "template", "spec", "template", "spec") or {}
        for name in sorted(spec.keys() & _POD_FIELDS.keys()):
            yield events.ignored(f"{name} of job {entry['name']}", _POD_FIELDS[name])
        for container in spec.get("containers") or ():
            for probe in ("livenessProbe", "startupProbe"):
                if container.get(probe):
                    yield events.ignored(
                        f"{probe} of container {container['name']}", "a training that hangs is yours to stop"
                    )
    for entry in beside:
        if entry["kind"] not in {"ConfigMap", "Secret"}:
            yield events.ignored(
                f"{entry['kind']} {entry['metadata']['name']}", "all pods start at once on one machine"
            )
    queue = trees.get(job, "metadata", "labels", names.LABEL_QUEUE)
    if queue:
        yield events.ignored(f"queue {queue}", "there is no Kueue: the job starts at once")
    if trees.get(job, "spec", "managedBy") == names.MANAGED_BY_MULTIKUEUE:
        yield events.ignored("spec.managedBy", "there are no other clusters")
