"""Where a job is: on this cluster, waiting on the hub, or on a worker.

The job itself does not say; its Workload does (`status.clusterName`, `status.nominatedClusterNames`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.hub.errors import NoSuchJobError
from trainplane.hub.kinds import TRAIN_JOB, kind_of
from trainplane.kube.errors import NotFoundError
from trainplane.resources import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.api.tree import Tree
    from trainplane.hub.kinds import JobKind
    from trainplane.kube.client import Client

State: TypeAlias = Literal["Local", "Waiting", "Dispatched", "Finished"]

_ADMITTED_ON: Final = re.compile(r'admitted on "([^"]+)"')
"""How Kueue's admission check names the worker, where `clusterName` does not (it does from Kueue 0.14 on)."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one job is."""

    namespace: str
    name: str
    uid: str
    cluster: str | None
    """The worker that has it, or had it when it finished; None: no worker."""
    nominated: tuple[str, ...]
    """The workers that are asked to take it, while none has."""
    workload: str | None
    """The name of its Workload, the same on the hub and on workers."""
    state: State
    reason: str
    """Why, in a sentence for people."""


def place(job: Tree, workload: Tree | None, former: str | None = None) -> Placement:
    """Return where a job is, by itself and its Workload on the hub.

    `former` is the worker that the Workload named last, if that is known: one that is evicted while the job ends there
    is named no more.
    """
    state, cluster, reason = _judge(job, workload, former)
    metadata = job["metadata"]
    waits = state == "Waiting"
    return Placement(
        namespace=metadata.get("namespace") or "",
        name=metadata["name"],
        uid=metadata.get("uid") or "",
        cluster=cluster,
        nominated=nominated_in(workload) if waits else (),
        workload=workload["metadata"]["name"] if workload else None,
        state=state,
        reason=reason,
    )


async def find(hub: Client, namespace: str, name: str, kind: JobKind = TRAIN_JOB) -> Placement:
    """Return where a job is; raises NoSuchJobError."""
    try:
        job = await hub.get(kind.resource, name, namespace)
    except NotFoundError as error:
        raise NoSuchJobError(namespace, name, kind.name) from error
    return place(job, await workload_of(hub, job))


async def workload_of(cluster: Client, job: Tree) -> Tree | None:
    """Return the Workload of a job, on the cluster where the job was read, or None if Kueue has made none."""
    metadata = job["metadata"]
    labels = {names.LABEL_JOB_UID: metadata["uid"]}
    return newest(await cluster.list_all(WORKLOADS, metadata["namespace"], labels=labels))


def newest(workloads: Iterable[Tree]) -> Tree | None:
    """Return the Workload that counts where one is on its way out: the last made that is not being deleted."""

    def rank(workload: Tree) -> tuple[bool, str]:
        metadata = workload["metadata"]
        return "deletionTimestamp" not in metadata, str(metadata.get("creationTimestamp") or "")

    return max(workloads, key=rank, default=None)


def named_in(workload: Tree | None) -> str | None:
    """Return the worker that a Workload names as the one that has it."""
    name = trees.get(workload, "status", "clusterName")
    if name:
        return str(name)
    for check in trees.get(workload, "status", "admissionChecks") or ():
        found = _ADMITTED_ON.search(check.get("message") or "")
        if found and check.get("state") == "Ready":
            return found[1]
    return None


def nominated_in(workload: Tree | None) -> tuple[str, ...]:
    """Return the workers that are asked to take a Workload; nobody is without quota on the hub.

    Kueue leaves the names of the last time where a Workload that was evicted gives its quota back.
    """
    reserved = trees.get(workload, "status", "conditions", ("type", "QuotaReserved"), "status") == "True"
    return tuple(trees.get(workload, "status", "nominatedClusterNames") or ()) if reserved else ()


def _judge(job: Tree, workload: Tree | None, former: str | None) -> tuple[State, str | None, str]:
    kind = kind_of(job)
    if not kind.is_dispatched(job):
        return "Local", None, f"it runs on this cluster: {kind.field('managedBy')} is {kind.managed_by(job)}"
    cluster = named_in(workload)
    end = kind.end(job)
    if end is not None:
        cluster = cluster or former
        where = f" on {cluster}" if cluster else ""
        return "Finished", cluster, f"{end['type']}{where}: {end.get('message') or end.get('reason') or ''}"
    if cluster:
        return "Dispatched", cluster, f"admitted on {cluster}"
    return "Waiting", None, _why_waiting(job, workload)


def _why_waiting(job: Tree, workload: Tree | None) -> str:
    queue = trees.get(job, "metadata", "labels", names.LABEL_QUEUE)
    if workload is None:
        if not queue:
            return f"it names no queue: set the label {names.LABEL_QUEUE}"
        return f"Kueue has made no Workload for it yet (queue {queue})"
    if trees.get(workload, "spec", "active") is False:
        condition = _condition(workload, "Evicted") or {}
        return f"its Workload is deactivated: {condition.get('message') or 'spec.active is false'}"
    reserved = _condition(workload, "QuotaReserved")
    if reserved is None or reserved.get("status") != "True":
        detail = f": {reserved['message']}" if reserved and reserved.get("message") else ""
        return f"no quota is reserved for it in queue {trees.get(workload, 'spec', 'queueName') or queue}{detail}"
    return _what_checks_say(workload)


def _what_checks_say(workload: Tree) -> str:
    nominated = nominated_in(workload)
    asked = f"{', '.join(nominated)} asked to take it, none has yet" if nominated else "quota is reserved on the hub"
    pending = [
        f"{check['name']} is {check.get('state') or 'Pending'}"
        + (f": {check['message']}" if check.get("message") else "")
        for check in trees.get(workload, "status", "admissionChecks") or ()
        if check.get("state") != "Ready"
    ]
    return "; ".join([asked, *pending])


def _condition(obj: Tree, kind: str) -> Tree | None:
    found: Tree | None = trees.get(obj, "status", "conditions", ("type", kind))
    return found
