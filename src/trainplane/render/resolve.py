"""From a TrainJob and its runtime to a plan: the runtime's template, the patches, the TrainJob's own words.

    runtime's template ─► runtimePatches in order, Kueue's last ─► counts ─► what spec.trainer says of the container

What every framework does alike stands here; what a framework needs beyond it is a plugin's. Kueue computes the same
names, counts and resources from the same two objects with the reference's Go code, so these follow the reference to the
letter, where it is odd too.
"""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.bounds import too_deep
from trainplane.render.errors import PatchError, ResolveError
from trainplane.render.findings import Finding
from trainplane.render.form import check_form
from trainplane.render.merge import (
    JOBSET_SPEC,
    JOBSET_SPEC_ADDING_TOLERATIONS,
    METADATA,
    Merge,
    MergeError,
)
from trainplane.render.plan import FieldWriter, Plan, variable
from trainplane.render.provenance import Origin, trainjob
from trainplane.render.resources import must_be_equal
from trainplane.render.targets import missing_targets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.api.tree import Tree
    from trainplane.render.plan import Container, Job, PodSet, Runtime

_LAST: Final = frozenset({names.PATCH_MANAGER_KUEUE})
"""Managers whose word stands whoever speaks after them in the list: where pods run is what quota was charged for."""

_ADDS_TOLERATIONS: Final = frozenset({names.PATCH_MANAGER_KUEUE})
"""Managers that write what a flavor tolerates and do not mean to take away what the runtime does."""

_LABELS_PODS: Final = frozenset({names.PATCH_MANAGER_OLDER_FIELDS})
"""Managers whose metadata is also the pods': `spec.labels` and `spec.annotations` of v2.0 and v2.1 promised that."""

_NUM_NODES: Final = Origin("runtime", path="spec.mlPolicy.numNodes")
_PARALLELISM: Final = Origin("runtime", path="spec.template.spec.replicatedJobs[].template.spec.parallelism")
_IMAGE: Final = trainjob("spec.trainer.image")
_COMMAND: Final = trainjob("spec.trainer.command")
_ARGS: Final = trainjob("spec.trainer.args")
_ENV: Final = trainjob("spec.trainer.env")


def resolve(job: Job, runtime: Runtime) -> Plan:
    """Return the plan before any plugin has written into it. The job and the runtime are not changed.

    Raises:
        PatchError: a runtimePatches entry speaks of something that the runtime does not have, or cannot be merged.
        ResolveError: a part of the runtime's template has another form than a JobSet's, or `resourcesPerNode` than
            amounts.
    """
    writer = FieldWriter()
    try:
        template = _template(runtime)
        _apply_patches(template, job, writer)
        plan = Plan(job, runtime, template, writer)
        for pods in plan.pod_sets:
            check_form(pods)
            _count(pods)
            _apply_trainer(pods)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ResolveError(
            Finding("spec.runtimeRef", f"the runtime's template does not have the form of a JobSet: {error}")
        ) from error
    except RecursionError as error:
        raise ResolveError(Finding("spec", f"with its runtime, {too_deep()}")) from error
    return plan


def _template(runtime: Runtime) -> Tree:
    """Return a copy of the runtime's JobSet template; of its metadata, what a JobSet may get from it."""
    given = trees.get(runtime.tree, "spec", "template") or {}
    metadata = given.get("metadata") or {}
    kept = {key: trees.copy(metadata[key]) for key in ("labels", "annotations") if metadata.get(key)}
    return {"metadata": kept, "spec": trees.without_nulls(given.get("spec") or {})}


def _apply_patches(template: Tree, job: Job, writer: FieldWriter) -> None:
    patches = trees.get(job.tree, "spec", "runtimePatches")
    if not patches:
        return
    for missing in missing_targets(patches, template):
        raise PatchError(missing.manager, missing.finding)
    jobs = template["spec"].get("replicatedJobs") or []
    order = {entry.get("name"): place for place, entry in enumerate(jobs)}
    for patch in sorted(patches, key=lambda patch: patch.get("manager") in _LAST):
        manager = patch.get("manager", "")
        change = trees.get(patch, "trainingRuntimeSpec", "template") or {}
        merge = Merge(writer.provenance, Origin("patch", manager))
        shape = JOBSET_SPEC_ADDING_TOLERATIONS if manager in _ADDS_TOLERATIONS else JOBSET_SPEC
        at = f"spec.runtimePatches[manager={manager}].trainingRuntimeSpec.template"
        try:
            metadata = change.get("metadata") or {}
            merge.into(template["metadata"], metadata, METADATA, f"{at}.metadata")
            if metadata and manager in _LABELS_PODS:
                merge.into(template["spec"], _on_pods(metadata, order, writer), shape, f"{at}.spec")
            merge.into(template["spec"], change.get("spec") or {}, shape, f"{at}.spec")
        except MergeError as error:
            raise PatchError(manager, Finding(error.path, error.problem)) from error
    merged = template["spec"].get("replicatedJobs")
    if merged:
        merged.sort(key=lambda entry: order[entry["name"]])


def _on_pods(metadata: Tree, jobs: Iterable[str], writer: FieldWriter) -> Tree:
    """Return the change that puts a JobSet's metadata on the pods of its jobs too."""
    pod = {"template": {"spec": {"template": {"metadata": metadata}}}}
    return {"replicatedJobs": [{"name": name, **writer.growth.copy(pod)} for name in jobs]}


def _count(pods: PodSet) -> None:
    """Settle how many pods there are by what the runtime says; frameworks let the TrainJob say otherwise."""
    policy = pods.plan.policy
    if policy is not None and pods.ancestor == names.ANCESTOR_TRAINER:
        nodes = 1 if policy.num_nodes is None else policy.num_nodes
        pods.set_pods(max(nodes, 1), origin=_NUM_NODES)
    else:
        pods.set_pods(max(pods.parallelism, 1), origin=_PARALLELISM)


def container_of_trainer(pods: PodSet) -> Container | None:
    """Return the container of some pods that spec.trainer speaks of, None if it does not speak of these pods."""
    policy = pods.plan.policy
    launched = (
        policy is not None
        and policy.mpi is not None
        and policy.mpi.run_launcher_as_node
        and pods.name == names.JOB_NODE
    )
    return pods.container(names.CONTAINER_NODE) if launched or pods.ancestor == names.ANCESTOR_TRAINER else None


def _apply_trainer(pods: PodSet) -> None:
    """Write what spec.trainer says into the container that trains."""
    said = trees.get(pods.plan.job.tree, "spec", "trainer")
    container = container_of_trainer(pods) if said else None
    if container is None:
        return
    _merge_resources(container, said.get("resourcesPerNode") or {})
    if pods.ancestor == names.ANCESTOR_TRAINER:
        _replace(container, said)
    container.set_env(*map(variable, said.get("env") or ()), origin=_ENV)


def _replace(container: Container, said: Tree) -> None:
    if said.get("image"):
        container.set("image", said["image"], origin=_IMAGE)
    for key, origin in (("command", _COMMAND), ("args", _ARGS)):
        words = said.get(key)
        if words is not None:  # an empty list is said on purpose: the image's own
            container.set(key, words or None, origin=origin)


def _merge_resources(container: Container, said: Tree) -> None:
    """Lay amounts over the runtime's, resource by resource; of what must be equal, one side speaks for both."""
    limits, requests = _amounts(said, "limits"), _amounts(said, "requests")
    for kind, amounts in (("limits", limits), ("requests", requests)):
        if amounts:
            container.set_resources(kind, amounts, origin=trainjob(f"spec.trainer.resourcesPerNode.{kind}"))
    limited = {
        name: amount
        for name, amount in limits.items()
        if must_be_equal(name) and name not in requests and name in container.requests
    }
    requested = {name: amount for name, amount in requests.items() if must_be_equal(name) and name not in limits}
    for kind, other, amounts in (("limits", "requests", limited), ("requests", "limits", requested)):
        if amounts:
            container.set_resources(other, amounts, origin=trainjob(f"spec.trainer.resourcesPerNode.{kind}"))
    container.set_claims(*said.get("claims") or (), origin=trainjob("spec.trainer.resourcesPerNode.claims"))


def _amounts(said: Tree, kind: str) -> dict[str, Any]:
    """Return limits or requests as the TrainJob says them; whoever renders before the schema has judged may see any."""
    amounts = said.get(kind) or {}
    if isinstance(amounts, dict):
        return amounts
    problem = f"must be amounts by resource, such as {{cpu: 4, memory: 16Gi}}, and is {reprlib.repr(amounts)}"
    raise ResolveError(Finding(f"spec.trainer.resourcesPerNode.{kind}", problem))
