"""JobSet: the object that runs the pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.render.amounts import write_amounts
from trainplane.render.findings import Finding
from trainplane.render.origin import Rendered, trainjob
from trainplane.render.plugin import Plugin
from trainplane.render.resources import over_limit, uneven
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
        marks = plan.pen.marks
        template = plan.template.tree
        write_amounts(template["spec"])
        metadata: Tree = {"name": names.jobset_name(plan.name), **template["metadata"]}
        spec: Tree = {**template["spec"], "suspend": plan.job.view.spec.suspend}
        tree = {"apiVersion": names.JOBSET_API_VERSION, "kind": names.JOBSET, "metadata": metadata, "spec": spec}
        marks.inherit(metadata, template["metadata"])
        marks.inherit(spec, template["spec"])
        marks.fields(tree, ("apiVersion", "kind"), plan.pen.origin)
        marks.field(metadata, "name", trainjob("metadata.name"))
        marks.field(spec, "suspend", trainjob("spec.suspend"))
        yield Rendered(tree, marks)

    def validate(self, plan: Plan, old: Document[TrainJob] | None) -> Iterator[Finding | str]:
        """Refuse resources that no pod may have, and patches of variables that have their own field.

        That a patch's targets exist is judged before there is a plan (`targets`).
        """
        del old
        container = plan.trainer_container
        if container and plan.trainer and plan.trainer.resources_per_node:
            for name, request, limit in over_limit(container):
                yield Finding(
                    "spec.trainer.resourcesPerNode",
                    f"with the runtime's resources, the pod would request {request} of {name} and be limited to "
                    f"{limit}: set both in resourcesPerNode",
                )
            for name, request, limit in uneven(container):
                yield Finding(
                    "spec.trainer.resourcesPerNode",
                    f"with the runtime's resources, the pod would request {request} of {name} and be limited to "
                    f"{limit}, and of {name} Kubernetes wants both to be equal: write it in one of them, or the same",
                )
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
