"""Gang scheduling: one PodGroup of the job's name, so that enough of its pods start together or none.

With Volcano pods are made only when the group is let into its queue. Any other scheduler named in the settings is one
of the scheduler plugins, and the name is what pods ask for as their scheduler.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.legacy.decision import VOLCANO
from trainplane.render.demand import Amounts, add, quantities

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.legacy.decision import Observed, Settings
    from trainplane.legacy.job import Job, Member

_DEFAULT_QUEUE: Final = "default"
_WAITING: Final = frozenset({"", "Pending"})
"""Phases of a group of Volcano that is not let in yet."""


def join(job: Job, member: Member, settings: Settings, pod: Tree) -> Tree:
    """Return a member's pod as one of its job's group; a scheduler that its template names stays."""
    if not settings.gang:
        return pod
    spec, metadata = pod["spec"], pod["metadata"]
    labels, annotations = trees.fields(metadata, "labels"), trees.fields(metadata, "annotations")
    if settings.gang == VOLCANO:
        mine = {names.ANNOTATION_VOLCANO_POD_GROUP: job.name, names.ANNOTATION_VOLCANO_TASK: member.type.lower()}
        metadata = {**metadata, "annotations": {**annotations, **mine}}
    else:
        metadata = {**metadata, "labels": {**labels, names.LABEL_COSCHEDULING_POD_GROUP: job.name}}
    spec = {**spec, "schedulerName": trees.text(spec, "schedulerName") or settings.gang}
    return {**pod, "metadata": metadata, "spec": spec}


def group(job: Job, seen: Observed, settings: Settings) -> Tree:
    """Return the job's group as it is to be."""
    policy = trees.fields(job.policy, "schedulingPolicy")
    least = trees.number(policy, "minAvailable")
    least = job.total if least is None else least
    spec: Tree = {"minMember": least, "minResources": policy.get("minResources") or _resources(job, least)}
    if settings.gang == VOLCANO:
        queued = trees.text(group_of(job, seen, settings), "spec", "queue")
        spec["queue"] = queued or trees.text(policy, "queue") or _DEFAULT_QUEUE
        if trees.text(policy, "priorityClass"):
            spec["priorityClassName"] = policy["priorityClass"]
    elif policy.get("scheduleTimeoutSeconds") is not None:
        spec["scheduleTimeoutSeconds"] = policy["scheduleTimeoutSeconds"]
    metadata: Tree = {"name": job.name, "namespace": job.namespace, "ownerReferences": [job.owner]}
    if said := trees.fields(job.tree, "metadata", "annotations"):
        metadata["annotations"] = dict(said)
    return {"apiVersion": _api_version(settings), "kind": names.POD_GROUP, "metadata": metadata, "spec": spec}


def group_of(job: Job, seen: Observed, settings: Settings) -> Tree | None:
    """Return the job's group as it is; None if there is none."""
    wanted = (_api_version(settings), names.POD_GROUP, job.name)
    return next((one for one in seen.others if _identity(one) == wanted), None)


def is_waiting(job: Job, seen: Observed, settings: Settings) -> bool:
    """Return whether pods are not to be made yet."""
    if settings.gang != VOLCANO:
        return False
    return (trees.text(group_of(job, seen, settings), "status", "phase") or "") in _WAITING


def _resources(job: Job, least: int) -> Tree:
    """Return what the first pods of the job request together, up to that many."""
    total: Amounts = {}
    for member in islice(job.members(), max(0, least)):
        for container in trees.entries(job.replicas[member.type].template, "spec", "containers"):
            resources = trees.fields(container, "resources")
            add(total, quantities(trees.fields(resources, "requests") or trees.fields(resources, "limits")))
    return {name: str(total[name]) for name in sorted(total)}


def _api_version(settings: Settings) -> str:
    return names.VOLCANO_API_VERSION if settings.gang == VOLCANO else names.COSCHEDULING_API_VERSION


def _identity(obj: Tree) -> tuple[object, ...]:
    return obj.get("apiVersion"), obj.get("kind"), trees.get(obj, "metadata", "name")
