"""Cache: the pods that serve a TrainJob's data while it trains, and how training finds them.

A step of the TrainJob becomes a data cache (`cachestep` says which): its pods run `python -m trainplane.cache node`,
the first one as the head. What makes that work in a runtime that says no more than the step:

- **The address is a true one.** `cache-initializer-0:50051` in DATA_CACHE_ENDPOINT names no host; training is told the
  head's, and the Service that the reference's clients ask for leads there, too.
- **A cache never ends**, so the JobSet ends with what trains, and who waited for the step to be complete waits until it
  is ready.
- **Training runs near its data.** The cache is there first, so it is the training's pods that look for its nodes.
- **Pods are what quota was charged for.** CLUSTER_SIZE and its like are variables, which Kueue does not read: it counts
  the runtime's pods. In a queue they may say nothing else; without one, they decide.
- **Nodes of one cache trust each other** by a key that is drawn once.
"""

from __future__ import annotations

import base64
import re
import secrets
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.errors import QuantityError
from trainplane.api.objectname import is_train_job_name
from trainplane.api.quantity import Quantity
from trainplane.render.cachestep import CACHE_SCHEME, CacheStep, cache_step, runs_references
from trainplane.render.findings import Finding
from trainplane.render.plan import CreateOnce
from trainplane.render.plugin import Plugin, RefusalError
from trainplane.render.provenance import trainjob

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from trainplane.api.document import Document
    from trainplane.api.trainjob import TrainJob
    from trainplane.api.tree import Tree
    from trainplane.render.plan import Container, Plan, PodSet

COMMAND: Final = ["python", "-m", "trainplane.cache", "node"]
_DATASET: Final = "spec.initializer.dataset"
_SIZE: Final = re.compile(r"[0-9]{1,9}")
_LABEL: Final = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_TABLE: Final = re.compile(r"cache://[^/\s]{1,255}/[^/\s]{1,255}")
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_HOSTNAME: Final = "kubernetes.io/hostname"
_ON_ONE_NODE: Final = 100
_IN_ONE_BLOCK: Final = 50
"""How much it weighs to be near, of 100."""


class Cache(Plugin):
    """Makes a step of a TrainJob its data cache.

    Args:
        image: the image that has the program, for steps that name the reference's; the operator knows its release's.
    """

    name = "Cache"

    def __init__(self, image: str = names.CACHE_IMAGE) -> None:
        self._image = image

    def enforce(self, plan: Plan) -> None:
        """Let the step serve, and training find it, run near it and end without it."""
        step = cache_step(plan)
        if step is None:
            return
        _settle_size(plan, step)
        self._serve(plan, step)
        if step.trains:
            return
        address = f"{step.pods.endpoint(0)}:{names.CACHE_PORT}"
        others = [pods for pods in plan.pod_sets if pods is not step.pods]
        for pods in others:
            _tell(pods, address, placeholder=step.pods.name)
            _await_ready(pods, step.pods.name)
        trainers = [pods for pods in others if pods.ancestor == names.ANCESTOR_TRAINER] or others
        _place_near(trainers, plan.name, step.pods.name, plan)
        _end_with(plan, trainers)

    def build(self, plan: Plan) -> Iterator[Tree | CreateOnce]:
        """Return the key of the cache's nodes, drawn once, and the Service by which clients know the head."""
        step = cache_step(plan)
        if step is None:
            return
        yield CreateOnce("v1", "Secret", names.cache_secret_name(plan.name), make_key, (names.CACHE_KEY,))
        head = {**_labels(plan.name, step.pods.name), names.ANNOTATION_COMPLETION_INDEX: "0"}
        port = {"name": "grpc", "port": names.CACHE_PORT, "targetPort": names.CACHE_PORT, "protocol": "TCP"}
        yield {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": names.cache_service_name(plan.name),
                "labels": {names.LABEL_JOBSET_NAME: names.jobset_name(plan.name)},
            },
            "spec": {"selector": head, "ports": [port]},
        }

    def validate(self, plan: Plan, old: Document[TrainJob] | None) -> Iterator[Finding | str]:
        """Judge what a new TrainJob wants of its cache; sizes are judged where they are used."""
        step = cache_step(plan)
        initializer = plan.job.view.spec.initializer
        source = initializer.dataset if initializer else None
        if old is not None or step is None or source is None:
            return
        uri = source.storage_uri or ""
        said = {entry.get("name") for entry in (*source.env, *step.container.env)}
        if uri.startswith(CACHE_SCHEME):
            if not _TABLE.fullmatch(uri):
                yield Finding(f"{_DATASET}.storageUri", f"is {uri[:80]!r}: write cache://SCHEMA/TABLE")
            if names.ENV_METADATA_LOC not in said and not (source.secret_ref or step.container.tree.get("envFrom")):
                yield Finding(
                    f"{_DATASET}.env",
                    f"has no {names.ENV_METADATA_LOC}, so nothing says where the table of {CACHE_SCHEME} is: write the "
                    "address of its Iceberg metadata file, or name a folder in storageUri, such as s3://bucket/table",
                )
        if names.ENV_IAM_ROLE in said:
            yield (
                f"{_DATASET}.env: {names.ENV_IAM_ROLE} has no effect: an admin gives the role to a ServiceAccount, and "
                f"names that in the runtime as serviceAccountName of job {step.pods.name}"
            )

    def _serve(self, plan: Plan, step: CacheStep) -> None:
        """Give the step's pods the program, their names for each other, a key and a disk."""
        pods, container = step.pods, step.container
        if runs_references(container):
            container.set("image", self._image)
        if not container.command and not container.args:
            container.set("command", COMMAND)
        if not container.tree.get("readinessProbe"):
            container.set("readinessProbe", {"grpc": {"port": names.CACHE_PORT}, "periodSeconds": 2})
        container.set_env(
            *_variables(
                {
                    names.ENV_CLUSTER_SIZE: str(pods.count),
                    names.ENV_CACHE_HEAD: f"{pods.endpoint(0)}:{names.CACHE_PORT}",
                    names.ENV_CACHE_SUBDOMAIN: plan.subdomain,
                    names.ENV_CACHE_KEY_FILE: f"{names.CACHE_KEY_MOUNT_PATH}/{names.CACHE_KEY}",
                    **_table(container),
                }
            )
        )
        key = {"secretName": names.cache_secret_name(plan.name), "defaultMode": 0o444}
        pods.set_volumes({"name": names.CACHE_KEY_VOLUME, "secret": key})
        mount = {"name": names.CACHE_KEY_VOLUME, "mountPath": names.CACHE_KEY_MOUNT_PATH, "readOnly": True}
        container.set_mounts(mount)
        mounted = {str(one.get("mountPath", "")).rstrip("/") for one in container.tree.get("volumeMounts") or ()}
        if _value(container, names.ENV_CACHE_DIR) is None:
            container.set_env(*_variables({names.ENV_CACHE_DIR: names.CACHE_MOUNT_PATH}))
            if names.CACHE_MOUNT_PATH not in mounted:
                pods.set_volumes({"name": names.CACHE_VOLUME, "emptyDir": {}})
                container.set_mounts({"name": names.CACHE_VOLUME, "mountPath": names.CACHE_MOUNT_PATH})


class SharedCache(Plugin):
    """Lets a TrainJob read from the data cache of another of its namespace, which the annotation names."""

    name = "SharedCache"

    def enforce(self, plan: Plan) -> None:
        """Tell training the address, and let it run near that cache."""
        other = _shared(plan)
        if other is None:
            return
        for pods in plan.pod_sets:
            _tell(pods, f"{names.cache_service_name(other)}:{names.CACHE_PORT}", placeholder=names.ANCESTOR_CACHE)
        trainers = [pods for pods in plan.pod_sets if pods.ancestor == names.ANCESTOR_TRAINER]
        _place_near(trainers, other, names.JOB_NODE, plan)

    def validate(self, plan: Plan, old: Document[TrainJob] | None) -> Iterator[Finding]:
        """Judge the annotation of a new TrainJob; it never changes (`admission.edits`)."""
        if old is None and _shared(plan) is not None and cache_step(plan) is not None:
            yield Finding(
                f"metadata.annotations[{names.ANNOTATION_CACHE}]",
                "names another TrainJob's data cache, and the runtime has one of its own: leave the annotation out, or "
                "choose a runtime without a cache",
                "Forbidden",
            )


def make_key() -> Tree:
    """Return the content of the Secret with a new key. Draws; everything else here is a function."""
    key = base64.b64encode(secrets.token_hex(32).encode()).decode()
    return {"type": "Opaque", "immutable": True, "data": {names.CACHE_KEY: key}}


def _shared(plan: Plan) -> str | None:
    """Return the TrainJob whose cache is read; a name without dots cannot be of another namespace."""
    other = plan.job.view.metadata.annotations.get(names.ANNOTATION_CACHE)
    if other is not None and not (is_train_job_name(other) and other != plan.name):
        raise RefusalError(
            f"metadata.annotations[{names.ANNOTATION_CACHE}]",
            "must be the name of another TrainJob in this namespace, whose runtime is for a data cache",
        )
    return other


def _settle_size(plan: Plan, step: CacheStep) -> None:
    """Let there be as many pods, as large, as the TrainJob says; where that is counted elsewhere, it must agree."""
    pods, container = step.pods, step.container
    if pods.replicas != 1:
        remedy = "write replicas 1, and the number of its pods as parallelism"
        raise RefusalError("spec.runtimeRef", f"the runtime's cache {pods.name} has {pods.replicas} Jobs: {remedy}")
    size, amounts = _size(container), _amounts(container)
    origin = trainjob(f"{_DATASET}.env")
    if step.trains or names.LABEL_QUEUE in plan.job.view.metadata.labels:
        _judge_counted(step, size, amounts)
        return
    if size is not None:
        pods.set_pods(size, origin=origin)
    for kind in ("requests", "limits") if amounts else ():
        container.set_resources(kind, {name: str(amount) for name, amount in amounts.items()}, origin=origin)


def _judge_counted(step: CacheStep, size: int | None, amounts: Mapping[str, Quantity]) -> None:
    pods, container = step.pods, step.container
    if step.trains:
        why, remedy = "its TrainJob's", "write spec.trainer.numNodes and spec.trainer.resourcesPerNode instead"
    else:
        why = "the runtime's, which is what its queue is charged for"
        remedy = (
            "choose a runtime whose cache has that size, leave the variable out, or read from a cache that is a "
            f"TrainJob of its own (annotation {names.ANNOTATION_CACHE})"
        )
    if size is not None and size != pods.count:
        problem = f"{names.ENV_CLUSTER_SIZE} is {size}, and the cache has {pods.count} pods, {why}"
        raise RefusalError(f"{_DATASET}.env", f"{problem}: {remedy}")
    for name, amount in amounts.items():
        has = container.requests.get(name) or container.limits.get(name)
        if has is None or Quantity.of(has) != amount:
            problem = f"asks for {amount} of {name} in the cache's pods, and they have {has or 'none'}, {why}"
            raise RefusalError(f"{_DATASET}.env", f"{problem}: {remedy}")


def _size(container: Container) -> int | None:
    """Return how many pods the variables ask for."""
    text = _value(container, names.ENV_CLUSTER_SIZE)
    if text is None:
        return None
    if not _SIZE.fullmatch(text) or int(text) == 0:
        problem = f"{names.ENV_CLUSTER_SIZE} is {text[:40]!r}: write the number of the cache's pods, 1 or more"
        raise RefusalError(f"{_DATASET}.env", problem)
    return int(text)


def _amounts(container: Container) -> dict[str, Quantity]:
    """Return what the variables ask for each pod: head and worker are made alike, so the larger of the two."""
    amounts: dict[str, Quantity] = {}
    for variable, resource in names.CACHE_AMOUNTS.items():
        text = _value(container, variable)
        if text is None:
            continue
        try:
            amount = Quantity.of(text)
        except QuantityError as error:
            raise RefusalError(f"{_DATASET}.env", f"{variable}: {error}") from error
        if amount.nanos <= 0:
            raise RefusalError(f"{_DATASET}.env", f"{variable} is {text[:40]!r}: write an amount above 0, such as 2Gi")
        amounts[resource] = max(amounts.get(resource, amount), amount)
    return amounts


def _value(container: Container, name: str) -> str | None:
    """Return what a container's variable says; an empty one says nothing."""
    entry = next((entry for entry in container.env if entry.get("name") == name), None)
    if entry is None:
        return None
    if entry.get("valueFrom") is not None:
        raise RefusalError(f"{_DATASET}.env", f"{name} must have a value: pods are made by it before one of them runs")
    return str(entry.get("value") or "") or None


def _table(container: Container) -> dict[str, str]:
    """Return the two parts of cache://SCHEMA/TABLE by the reference's names, where nobody said them."""
    uri = next((entry.get("value") for entry in container.env if entry.get("name") == names.ENV_STORAGE_URI), None)
    if not isinstance(uri, str) or not _TABLE.fullmatch(uri):
        return {}
    schema, _, table = uri.removeprefix(CACHE_SCHEME).partition("/")
    said = {entry.get("name") for entry in container.env}
    values = {names.ENV_SCHEMA_NAME: schema, names.ENV_TABLE_NAME: table}
    return {name: value for name, value in values.items() if name not in said}


def _variables(values: Mapping[str, str]) -> Iterator[Tree]:
    return ({"name": name, "value": value} for name, value in values.items())


def _tell(pods: PodSet, address: str, *, placeholder: str) -> None:
    """Let containers know the cache by its address, where they have none, or one that names no host."""
    nameless = re.compile(rf"((?:grpc://)?){re.escape(placeholder)}(?:-0){{0,2}}(?::{names.CACHE_PORT})?")
    for window in (*pods.containers, *pods.init_containers):
        told = next((entry for entry in window.env if entry.get("name") == names.ENV_CACHE_ENDPOINT), None)
        found = nameless.fullmatch(str(told.get("value") or "")) if told else None
        if found or (told is None and window.name == names.CONTAINER_NODE):
            scheme = found[1] if found else ""
            window.set_env({"name": names.ENV_CACHE_ENDPOINT, "value": f"{scheme}{address}"})


def _await_ready(pods: PodSet, cache: str) -> None:
    """Let a job that waits for the cache to be complete, which it never is, wait until it is ready."""
    for wait in pods.get("dependsOn") or ():
        if wait.get("name") == cache and wait.get("status") != "Ready":
            pods.plan.writer.write(wait, "status", "Ready", None)


def _place_near(jobs: Iterable[PodSet], train_job: str, cache: str, plan: Plan) -> None:
    """Let pods prefer the nodes of a cache, and then what the runtime calls near."""
    key = plan.runtime.view.metadata.annotations.get(names.ANNOTATION_CACHE_TOPOLOGY)
    if key is not None and not _LABEL.fullmatch(key):
        at = f"the runtime's annotation {names.ANNOTATION_CACHE_TOPOLOGY}"
        raise RefusalError("spec.runtimeRef", f"{at} is {key[:80]!r}: write the name of a label of nodes")
    selector = {"matchLabels": _labels(train_job, cache)}
    terms = [
        {"weight": weight, "podAffinityTerm": {"topologyKey": topology, "labelSelector": selector}}
        for topology, weight in ((_HOSTNAME, _ON_ONE_NODE), (key, _IN_ONE_BLOCK))
        if topology
    ]
    for pods in jobs:
        holder = pods.grow("template", "spec", "template", "spec", "affinity", "podAffinity")
        present: list[Any] = holder.get(_PREFERRED) or []
        holder[_PREFERRED] = [*present, *plan.writer.entries(terms, None)]


def _end_with(plan: Plan, trainers: Iterable[PodSet]) -> None:
    """Let the JobSet be complete when training is, unless the runtime names whom it ends with."""
    policy = trees.get(plan.template.tree, "spec", "successPolicy") or {}
    if not policy.get("targetReplicatedJobs"):
        targets = [pods.name for pods in trainers]
        ends = {"operator": policy.get("operator") or "All", "targetReplicatedJobs": targets}
        plan.writer.write(plan.template.grow("spec"), "successPolicy", ends, None)


def _labels(train_job: str, replicated_job: str) -> dict[str, str]:
    return {names.LABEL_JOBSET_NAME: names.jobset_name(train_job), names.LABEL_REPLICATED_JOB: replicated_job}
