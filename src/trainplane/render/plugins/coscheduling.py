"""Coscheduling: the scheduler plugins' PodGroup, so that a TrainJob's pods start together or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.render.gang import gang_of
from trainplane.render.plugin import Plugin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.runtime import CoschedulingPolicy
    from trainplane.api.tree import Tree
    from trainplane.render.plan import Plan


class Coscheduling(Plugin):
    """Serves runtimes with `podGroupPolicy.coscheduling`."""

    name = "CoScheduling"

    def enforce(self, plan: Plan) -> None:
        """Label the pods of the gang with their group."""
        if _policy(plan):
            for pods in gang_of(plan).members:
                pods.label_pods({names.LABEL_COSCHEDULING_POD_GROUP: names.pod_group_name(plan.name)})

    def build(self, plan: Plan) -> Iterator[Tree]:
        """Return the group."""
        policy = _policy(plan)
        if policy is None:
            return
        gang = gang_of(plan)
        yield {
            "apiVersion": names.COSCHEDULING_API_VERSION,
            "kind": names.POD_GROUP,
            "metadata": {"name": names.pod_group_name(plan.name)},
            "spec": {
                "minMember": gang.size,
                "minResources": gang.resources(),
                "scheduleTimeoutSeconds": policy.schedule_timeout_seconds,
            },
        }


def _policy(plan: Plan) -> CoschedulingPolicy | None:
    return plan.pod_group_policy.coscheduling if plan.pod_group_policy else None
