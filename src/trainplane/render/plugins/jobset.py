"""JobSet: the object that runs the pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.render.amounts import write_amounts
from trainplane.render.findings import Finding
from trainplane.render.nulls import fill_nulls
from trainplane.render.plugin import Plugin
from trainplane.render.provenance import Rendered, trainjob
from trainplane.render.resolve import container_of_trainer
from trainplane.render.resources import impossible
from trainplane.render.targets import job_patches, path_of, pod_spec_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.document import Document
    from trainplane.api.trainjob import TrainJob
    from trainplane.api.tree import Tree
    from trainplane.render.plan import Plan

_ANCESTORS: Final = frozenset(names.ANCESTORS)
_MANAGED: Final = {
    names.CONTAINER_NODE: "spec.trainer.env",
    names.ANCESTOR_DATASET: "spec.initializer.dataset.env",
    names.ANCESTOR_MODEL: "spec.initializer.model.env",
}
"""Containers whose variables have a field of their own."""
_MPI_COUNTS: Final = frozenset({"numNodes", "numProcPerNode"})
"""What MPI does not take from a label: its nodes are the job of that name."""
_LABEL: Final = ("metadata", "labels", names.LABEL_ANCESTOR)


class JobSet(Plugin):
    """Makes the JobSet of the plan."""

    name = names.JOBSET

    def enforce(self, plan: Plan) -> None:
        """Let each part of the TrainJob be one Job: ranks count the pods of one Job, and Kueue counts so too."""
        for pods in plan.pod_sets:
            if pods.ancestor in _ANCESTORS and pods.tree.get("replicas") != 1:
                pods.set_replicas(1)

    def build(self, plan: Plan) -> Iterator[Rendered]:
        """Return the JobSet; labels and annotations are the template's, since those of a TrainJob are its own."""
        provenance = plan.writer.provenance
        template = plan.template.tree
        write_amounts(template["spec"])
        fill_nulls(template["spec"], provenance, plan.writer.origin)
        metadata: Tree = {"name": names.jobset_name(plan.name), **template["metadata"]}
        spec: Tree = {**template["spec"], "suspend": plan.job.view.spec.suspend}
        tree = {"apiVersion": names.JOBSET_API_VERSION, "kind": names.JOBSET, "metadata": metadata, "spec": spec}
        provenance.inherit(metadata, template["metadata"])
        provenance.inherit(spec, template["spec"])
        provenance.fields(tree, ("apiVersion", "kind"), plan.writer.origin)
        provenance.field(metadata, "name", trainjob("metadata.name"))
        provenance.field(spec, "suspend", trainjob("spec.suspend"))
        yield Rendered(tree, provenance)

    def validate(self, plan: Plan, old: Document[TrainJob] | None) -> Iterator[Finding | str]:
        """Refuse resources that no pod may have, and patches of variables that have their own field.

        That a patch's targets exist is judged before there is a plan (`targets`).
        """
        if old is None:
            yield from _judge_heard(plan)
            yield from _judge_found(plan)
        container = plan.trainer_container
        if container and plan.trainer and plan.trainer.resources_per_node:
            for _, _, problem in impossible(container):
                yield Finding(
                    "spec.trainer.resourcesPerNode",
                    f"with the runtime's resources, the pod {problem}: write what it may have in resourcesPerNode",
                )
        if container and not container.image:
            yield Finding("spec.trainer.image", "must be there: the runtime has no image for it", "Required")
        for manager, change in job_patches(trees.get(plan.job.tree, "spec", "runtimePatches") or ()):
            for container in pod_spec_of(change).get("containers") or ():
                name = container.get("name", "")
                if container.get("env") and name in _MANAGED:
                    path = path_of(manager, change)
                    place = f"{path}.template.spec.template.spec.containers[name={name}].env"
                    yield Finding(place, f"variables of container {name} are set in {_MANAGED[name]}: move them there")
            for place in ("template.metadata", "template.spec.template.metadata"):
                ignored = sorted((trees.get(change, *place.split(".")) or {}).keys() - {"labels", "annotations"})
                if ignored:
                    path = path_of(manager, change)
                    yield f"{path}.{place}: only labels and annotations are taken, {', '.join(ignored)} has no effect"


def _judge_heard(plan: Plan) -> Iterator[Finding]:
    """Yield a finding if nobody hears what spec.trainer says: the runtime's default would run, and nothing tell it."""
    trainer: Tree = trees.get(plan.job.tree, "spec", "trainer") or {}
    counted = _MPI_COUNTS if plan.policy and plan.policy.mpi else frozenset()
    said = sorted(name for name, value in trainer.items() if value and name not in counted)
    if not said or any(container_of_trainer(pods) for pods in plan.pod_sets):
        return
    label = f"the label {names.LABEL_ANCESTOR}: {names.ANCESTOR_TRAINER}"
    jobs = [pods for pods in plan.pod_sets if pods.ancestor == names.ANCESTOR_TRAINER]
    if jobs:
        why = f"job {jobs[0].name} of the runtime, which trains, has no container {names.CONTAINER_NODE}"
    else:
        why = f"no job of the runtime has {label} in its template.metadata"
        if any(pods.get("template", "spec", "template", *_LABEL) for pods in plan.pod_sets):
            why += " (that of its pods does not count)"
    yield Finding("spec.trainer", f"{', '.join(said)} would have no effect: {why}. Mend the runtime, or leave them out")


def _judge_found(plan: Plan) -> Iterator[str]:
    """Yield a warning if nodes that meet by name have none."""
    pods, policy = plan.trainer_set, plan.policy
    if pods is None or policy is None or plan.template.get("spec", "network", "enableDNSHostnames") is not False:
        return
    nodes = plan.trainer.num_nodes if plan.trainer and plan.trainer.num_nodes is not None else pods.count
    meets = policy.torch or policy.mpi or policy.jax or policy.xgboost or policy.flux or plan.framework
    if meets and nodes > 1:
        yield (
            "spec.runtimeRef: the runtime's network.enableDNSHostnames is false, so its pods have no names, and "
            f"{nodes} nodes will not find the first one, {pods.endpoint(0)}"
        )
