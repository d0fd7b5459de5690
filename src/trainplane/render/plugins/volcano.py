"""Volcano: its PodGroup, so that a TrainJob's pods start together or not at all, near each other, out of a queue.

The queue is named by the annotation `scheduling.volcano.sh/queue-name` of the runtime's template, or of a patch of its
metadata. That a PriorityClass exists is left to the API server, which refuses pods that name one it does not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.render.findings import Finding
from trainplane.render.gang import gang_of
from trainplane.render.plugin import Plugin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.document import Document
    from trainplane.api.runtime import VolcanoPolicy
    from trainplane.api.trainjob import TrainJob
    from trainplane.api.tree import Tree
    from trainplane.render.plan import Plan


class Volcano(Plugin):
    """Serves runtimes with `podGroupPolicy.volcano`."""

    name = "Volcano"

    def enforce(self, plan: Plan) -> None:
        """Annotate the pods of the gang with their group."""
        if _policy(plan):
            for pods in gang_of(plan).members:
                pods.annotate_pods({names.ANNOTATION_VOLCANO_POD_GROUP: names.pod_group_name(plan.name)})

    def build(self, plan: Plan) -> Iterator[Tree]:
        """Return the group."""
        policy = _policy(plan)
        if policy is None:
            return
        gang = gang_of(plan)
        priorities = [pods.pod_spec.get("priorityClassName") for pods in plan.pod_sets]
        said = {
            "queue": plan.template.annotations.get(names.ANNOTATION_VOLCANO_QUEUE),
            "priorityClassName": next((name for name in reversed(priorities) if name), None),
        }
        spec: Tree = {"minMember": gang.size, "minResources": gang.resources()}
        spec |= {key: value for key, value in said.items() if value}
        if policy.network_topology:
            spec["networkTopology"] = {
                "mode": policy.network_topology.mode,
                "highestTierAllowed": policy.network_topology.highest_tier_allowed,
            }
        yield {
            "apiVersion": names.VOLCANO_API_VERSION,
            "kind": names.POD_GROUP,
            "metadata": {"name": names.pod_group_name(plan.name)},
            "spec": spec,
        }

    def validate(self, plan: Plan, old: Document[TrainJob] | None) -> Iterator[Finding]:
        """Check the name of the queue."""
        del old
        queue = names.ANNOTATION_VOLCANO_QUEUE
        if _policy(plan) and plan.template.annotations.get(queue) == "":
            is_of_runtime = trees.get(plan.runtime.tree, "spec", "template", "metadata", "annotations", queue) == ""
            path, whose = ("spec.runtimeRef", "the runtime's ") if is_of_runtime else ("spec.runtimePatches", "")
            yield Finding(
                path,
                f"{whose}annotation {queue} of the template is empty: name a queue of Volcano, or leave it out for the "
                "default queue",
            )


def _policy(plan: Plan) -> VolcanoPolicy | None:
    return plan.pod_group_policy.volcano if plan.pod_group_policy else None
