"""The gang of an MPIJob: launcher and workers start together or not at all, where an admin chose a scheduler for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names as common
from trainplane.api import tree as trees
from trainplane.api.legacy import names
from trainplane.legacy.decision import VOLCANO
from trainplane.render.demand import Amounts, add, pod_requests

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.legacy.decision import Settings
    from trainplane.legacy.mpi.job import MPIJob


def pod_group(job: MPIJob, settings: Settings) -> Tree | None:
    """Return the group of the job's pods; None where nobody schedules gangs."""
    if not settings.gang:
        return None
    least = trees.number(job.scheduling, "minAvailable")
    members = job.workers + 1 if least is None else least
    metadata = {"name": job.name, "namespace": job.namespace, "ownerReferences": [job.owner]}
    spec: Tree = {"minMember": members} if members else {}
    resources = trees.fields(job.scheduling, "minResources") or _resources(job, members)
    if resources:
        spec["minResources"] = resources
    if settings.gang != VOLCANO:
        spec["scheduleTimeoutSeconds"] = trees.number(job.scheduling, "scheduleTimeoutSeconds") or 0
        version = common.COSCHEDULING_API_VERSION
    else:
        annotation = trees.text(job.tree, "metadata", "annotations", common.ANNOTATION_VOLCANO_QUEUE)
        said = {"queue": trees.text(job.scheduling, "queue") or annotation, "priorityClassName": _priority(job)}
        spec |= {key: value for key, value in said.items() if value}
        version = common.VOLCANO_API_VERSION
    return {"apiVersion": version, "kind": common.POD_GROUP, "metadata": metadata, "spec": spec}


def decorated(template: Tree, job: MPIJob, settings: Settings) -> Tree:
    """Return a template whose pods their scheduler knows to be of the job's gang."""
    if not settings.gang:
        return template
    field, key = ("labels", common.LABEL_COSCHEDULING_POD_GROUP)
    if settings.gang == VOLCANO:
        field, key = ("annotations", common.ANNOTATION_VOLCANO_POD_GROUP)
    marked = trees.put(template, "metadata", field, key, value=job.name)
    return {**marked, "spec": {**template["spec"], "schedulerName": settings.gang}}


def _resources(job: MPIJob, members: int) -> Tree:
    """Return what the smallest gang that may start needs: the launcher, and workers up to the number of members."""
    total: Amounts = {}
    if members > 0:
        add(total, pod_requests(_spec(job, names.LAUNCHER)))
        add(total, pod_requests(_spec(job, names.WORKER)), times=min(job.workers, members - 1))
    return {name: str(total[name]) for name in sorted(total)}


def _priority(job: MPIJob) -> str | None:
    named = (trees.text(_spec(job, one), "priorityClassName") for one in (names.LAUNCHER, names.WORKER))
    return trees.text(job.scheduling, "priorityClass") or next(filter(None, named), None)


def _spec(job: MPIJob, replica_type: str) -> Tree:
    return trees.fields(job.replica(replica_type), "template", "spec")
