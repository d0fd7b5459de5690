"""What a job needs on the worker that gets it: read from the pods that it becomes, before there are any.

A TrainJob's pods are rendered as the operator renders them, from itself and the hub's runtime, so what a runtime or an
initializer brings in is seen too. What the rendering itself makes (keys, host files) is not looked for.
A job of `kubeflow.org` carries its pods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from trainplane.api import document, names
from trainplane.api import tree as trees
from trainplane.api.errors import DecodeError, QuantityError
from trainplane.api.runtime import ClusterTrainingRuntime, TrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.hub.check.facts import Reference
from trainplane.hub.errors import ManifestError
from trainplane.hub.kinds import KINDS, kind_of
from trainplane.hub.pending.workload import PodSetNeed
from trainplane.kube.resource import Key
from trainplane.render.demand import pod_requests
from trainplane.render.errors import RenderError
from trainplane.render.pipeline import Pipeline
from trainplane.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PRIORITY_CLASSES,
    SECRETS,
    SERVICE_ACCOUNTS,
    TRAINING_RUNTIMES,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Tree
    from trainplane.hub.check.facts import ClusterFacts
    from trainplane.hub.kinds import JobKind
    from trainplane.kube.resource import Resource

_SOURCES: Final = {
    "secret": ("secretName", SECRETS),
    "configMap": ("name", CONFIG_MAPS),
    "persistentVolumeClaim": ("claimName", PERSISTENT_VOLUME_CLAIMS),
}
_FROM: Final = {
    "secretKeyRef": SECRETS,
    "configMapKeyRef": CONFIG_MAPS,
    "secretRef": SECRETS,
    "configMapRef": CONFIG_MAPS,
}


@dataclass(frozen=True, slots=True)
class Needs:
    """What a job needs."""

    namespace: str
    name: str
    queue: Key | None
    """Its LocalQueue; None if it names none."""
    references: tuple[Reference, ...] = ()
    pod_sets: tuple[PodSetNeed, ...] = ()
    problem: str = ""
    """Why its pods cannot be computed, if so."""


def read_manifest(text: str, namespace: str, where: str) -> Tree:
    """Return the one job of a manifest, in `namespace` if it names none. Raises ManifestError."""
    try:
        documents = [document for document in yaml.safe_load_all(text) if isinstance(document, dict)]
    except yaml.YAMLError as error:
        raise ManifestError(f"{where} is not YAML: {' '.join(str(error).split())}") from error
    jobs = [document for document in documents if _is_job(document)]
    if len(jobs) != 1:
        kinds = ", ".join(str(document.get("kind")) for document in documents) or "nothing"
        raise ManifestError(
            f"{where} must have one TrainJob or job of kubeflow.org, it has {len(jobs)} (it has: {kinds})"
        )
    metadata = jobs[0].get("metadata") or {}
    if not metadata.get("name"):
        raise ManifestError(f"{where}: the {jobs[0]['kind']} has no metadata.name: give it one")
    return {**jobs[0], "metadata": {"namespace": namespace, **metadata}}


def _is_job(document: Tree) -> bool:
    kind = KINDS.get(str(document.get("kind")))
    group = str(document.get("apiVersion") or "").rpartition("/")[0]
    return kind is not None and group in {kind.resource.group, ""}


def needs_of(job: Tree, hub: ClusterFacts) -> Needs:
    """Return what a job needs; a TrainJob by the hub's runtimes."""
    metadata = job["metadata"]
    namespace, name = str(metadata.get("namespace") or "default"), str(metadata["name"])
    queue = trees.get(job, "metadata", "labels", names.LABEL_QUEUE)
    key = Key(namespace, str(queue)) if queue else None
    try:
        kind = kind_of(job)
        references, pod_sets = (
            _read_replicas(job, kind) if kind.replica_specs else _read(job, _runtime(job, namespace, hub))
        )
    except (DecodeError, QuantityError, RenderError, LookupError) as error:
        return Needs(namespace, name, key, problem=str(error.args[0] if isinstance(error, LookupError) else error))
    return Needs(namespace, name, key, references, pod_sets)


def _runtime(job: Tree, namespace: str, hub: ClusterFacts) -> Tree:
    ref = trees.get(job, "spec", "runtimeRef") or {}
    kind, name = ref.get("kind") or names.CLUSTER_TRAINING_RUNTIME, str(ref.get("name") or "")
    if kind == names.TRAINING_RUNTIME:
        resource, key = TRAINING_RUNTIMES, Key(namespace, name)
    else:
        resource, key = CLUSTER_TRAINING_RUNTIMES, Key("", name)
    found = hub.seen(resource).get(key)
    if found is None:
        known = ", ".join(str(one) for one in sorted(hub.seen(resource))) or "none"
        raise LookupError(f"spec.runtimeRef names {kind} {key}, which the hub does not have (it has: {known})")
    return found


def _read(job: Tree, runtime: Tree) -> tuple[tuple[Reference, ...], tuple[PodSetNeed, ...]]:
    is_namespaced = bool(runtime["metadata"].get("namespace"))
    kind: Any = TrainingRuntime if is_namespaced else ClusterTrainingRuntime
    rendering = Pipeline.default().render(document.read(job, TrainJob), document.read(runtime, kind))
    made = {(one.tree["kind"], one.tree["metadata"]["name"]) for one in rendering.objects}
    made |= {(kept.kind, kept.name) for kept in rendering.kept}
    found: list[Reference] = []
    pod_sets = []
    for pods in rendering.plan.pod_sets:
        found += references_of(pods.pod_spec, f"pods of {pods.name}")
        template = pods.get("template", "spec", "template") or {}
        count = pods.replicas * pods.count
        pod_sets.append(PodSetNeed(pods.name.lower(), count, pod_requests(pods.pod_spec), template))
    wanted = {(one.resource, one.name): one for one in reversed(found) if (one.resource.kind, one.name) not in made}
    return tuple(reversed(wanted.values())), tuple(pod_sets)


def _read_replicas(job: Tree, kind: JobKind) -> tuple[tuple[Reference, ...], tuple[PodSetNeed, ...]]:
    replicas = trees.fields(job, "spec", kind.replica_specs)
    if not replicas:
        raise LookupError(f"spec.{kind.replica_specs} is missing: it has the pods, by their types")
    found: list[Reference] = []
    pod_sets = []
    for name in sorted(replicas):
        template = trees.fields(replicas, name, "template")
        pod = trees.fields(template, "spec")
        found += references_of(pod, f"pods of {name}")
        count = trees.get(replicas, name, "replicas")
        if count is not None and (not isinstance(count, int) or count < 0):
            raise LookupError(f"spec.{kind.replica_specs}.{name}.replicas is {count!r}: write a number")
        pod_sets.append(PodSetNeed(name.lower(), 1 if count is None else count, pod_requests(pod), template))
    wanted = {(one.resource, one.name): one for one in reversed(found)}
    return tuple(reversed(wanted.values())), tuple(pod_sets)


def references_of(pod: Tree, by: str) -> Iterator[Reference]:
    """Iterate over the objects that a pod's spec names and cannot start without; optional ones are left out."""
    for volume in pod.get("volumes") or ():
        yield from _volume(volume, by)
    for container in (*(pod.get("initContainers") or ()), *(pod.get("containers") or ())):
        where = f"container {container.get('name')} of the {by}"
        for variable in container.get("env") or ():
            yield from _sources(variable.get("valueFrom") or {}, where)
        for source in container.get("envFrom") or ():
            yield from _sources(source, where)
    for secret in pod.get("imagePullSecrets") or ():
        if secret.get("name"):
            yield Reference(SECRETS, str(secret["name"]), f"imagePullSecrets of the {by}", fatal=False)
    account = pod.get("serviceAccountName") or pod.get("serviceAccount")
    if account and account != "default":
        yield Reference(SERVICE_ACCOUNTS, str(account), f"the {by}")
    priority = str(pod.get("priorityClassName") or "")
    if priority and not priority.startswith("system-"):
        yield Reference(PRIORITY_CLASSES, priority, f"the {by}")


def _volume(volume: Tree, by: str) -> Iterator[Reference]:
    where = f"volume {volume.get('name')} of the {by}"
    sources = [volume, *(trees.get(volume, "projected", "sources") or ())]
    for holder in sources:
        for kind, (key, resource) in _SOURCES.items():
            source = holder.get(kind) or {}
            name = source.get(key) or source.get("name")
            if name and not source.get("optional"):
                yield Reference(resource, str(name), where)
    secret = trees.get(volume, "csi", "nodePublishSecretRef", "name")
    if secret:
        yield Reference(SECRETS, str(secret), where)


def _sources(holder: Tree, by: str) -> Iterator[Reference]:
    for kind, resource in _FROM.items():
        source = holder.get(kind) or {}
        if source.get("name") and not source.get("optional"):
            yield Reference(resource, str(source["name"]), by)


def located(reference: Reference, namespace: str) -> tuple[Resource, str | None]:
    """Return where to look for a reference: its resource and namespace, None if it lives in none."""
    return reference.resource, namespace if reference.resource.namespaced else None
