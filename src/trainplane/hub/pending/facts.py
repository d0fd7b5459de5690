"""What an answer to "why is it queued?" is made of, and how it is read.

Reading is bounded by the number of kinds, not of jobs: lists are filtered by the API server where it can, and what is
only needed for a rare answer is read only then. What we may not read is left out and named in `Facts.unread`: on a
worker MultiKueue's credentials often cover queues and Workloads alone. What does not look like its kind (`shapes`) is
left out and named too.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.hub.errors import HubError, NoSuchJobError, UnreadableError
from trainplane.hub.kinds import TRAIN_JOB, kind_of
from trainplane.hub.pending import shapes
from trainplane.hub.pending.quota import QuotaTree
from trainplane.hub.pending.workload import FINISHED, holds
from trainplane.hub.placement import newest
from trainplane.hub.workers import WORKER_SECONDS, answering
from trainplane.kube.clock import SystemClock
from trainplane.kube.errors import DecodeError, ForbiddenError, NotFoundError
from trainplane.resources import (
    ADMISSION_CHECKS,
    CLUSTER_QUEUES,
    CLUSTER_TRAINING_RUNTIMES,
    COHORTS,
    EVENTS,
    LOCAL_QUEUES,
    MULTIKUEUE_CONFIGS,
    NAMESPACES,
    NODES,
    RESOURCE_FLAVORS,
    TRAIN_JOBS,
    TRAINING_RUNTIMES,
    WORKLOADS,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from datetime import datetime

    from trainplane.api.tree import Tree
    from trainplane.hub.kinds import JobKind
    from trainplane.hub.workers import Workers
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.resource import Resource

_ADMITTED_TO: Final = "status.admission.clusterQueue"
"""The field of a Workload that the API server can select by."""
COHORT_LISTS: Final = 5
"""Of how many ClusterQueues of a cohort the holders of quota are listed: the job's own first."""
HOLDERS_ASKED: Final = 5
"""How many jobs that hold quota are asked when they end."""


@dataclass(frozen=True, slots=True)
class Facts:
    """One cluster as far as it concerns one job. Lists of kinds that could not be read are None."""

    job: Tree
    now: datetime
    cluster: str | None = None
    """The worker that these facts are of; None: the cluster where the job was made."""
    workload: Tree | None = None
    model: Tree | None = None
    """On a worker: the hub's Workload, of which the worker's is or would be a copy."""
    namespace: Tree | None = None
    namespace_labels: Mapping[str, Mapping[str, str]] | None = None
    """Labels of all namespaces, read where a queue admits strictly in order: who is not selected holds nobody up."""
    local_queues: tuple[Tree, ...] = ()
    """Of all namespaces: several lead to one ClusterQueue."""
    cluster_queues: tuple[Tree, ...] = ()
    cohorts: tuple[Tree, ...] = ()
    flavors: tuple[Tree, ...] | None = None
    checks: tuple[Tree, ...] | None = None
    nodes: tuple[Tree, ...] | None = None
    pending: tuple[Tree, ...] = ()
    """Workloads without quota, of all namespaces."""
    holding: tuple[Tree, ...] = ()
    """Workloads with quota in the job's ClusterQueue and its cohort."""
    holding_jobs: Mapping[tuple[str, str], Tree] = field(default_factory=dict)
    """Jobs of `holding`, by namespace and name, as far as they were read."""
    runtime_exists: bool | None = None
    """None: not read, as on workers, or not ours to read."""
    events: tuple[Tree, ...] = ()
    """About the job; only read where there is no Workload."""
    workers: Mapping[str, Facts | str] = field(default_factory=dict)
    """On a hub: each worker that the job may go to, or why nothing is known of it."""
    unread: tuple[str, ...] = ()
    """Kinds that could not be read, and objects that are none of their kind."""

    @property
    def queue(self) -> str:
        """The LocalQueue that the job names; empty if none."""
        label = trees.get(self.job, "metadata", "labels", names.LABEL_QUEUE)
        return str(trees.get(self.sized, "spec", "queueName") or label or "")

    @property
    def knows_queues(self) -> bool:
        """Whether queues could be read: what is not in the lists does not exist."""
        return not {LOCAL_QUEUES.plural, CLUSTER_QUEUES.plural} & set(self.unread)

    @property
    def sized(self) -> Tree | None:
        """The Workload that says what the job needs."""
        return self.workload or self.model

    @property
    def local_queue(self) -> Tree | None:
        """The LocalQueue, if it exists."""
        return self.find_local_queue(self.job["metadata"]["namespace"], self.queue)

    @property
    def cluster_queue(self) -> Tree | None:
        """The ClusterQueue that the LocalQueue leads to, if both exist."""
        return named(self.cluster_queues, trees.get(self.local_queue, "spec", "clusterQueue"))

    def find_local_queue(self, namespace: str, name: str) -> Tree | None:
        """Return a LocalQueue of any namespace."""
        mine = (q for q in self.local_queues if q["metadata"]["namespace"] == namespace)
        return named(mine, name)


def named(objects: Iterable[Tree], name: str | None) -> Tree | None:
    """Return the object of that name."""
    return next((each for each in objects if each["metadata"]["name"] == name), None)


def checks_of(queue: Tree | None) -> tuple[str, ...]:
    """Return the admission checks of a ClusterQueue."""
    return tuple(each["name"] for each in trees.get(queue, "spec", "admissionChecksStrategy", "admissionChecks") or ())


def dispatching_check(facts: Facts, queue: Tree | None) -> Tree | None:
    """Return the check by which a ClusterQueue sends jobs to workers, or None."""
    mine = (check for check in facts.checks or () if check["metadata"]["name"] in checks_of(queue))
    return next((c for c in mine if trees.get(c, "spec", "controllerName") == names.MANAGED_BY_MULTIKUEUE), None)


async def gather(
    client: Client,
    namespace: str,
    name: str,
    workers: Workers | None = None,
    *,
    kind: JobKind = TRAIN_JOB,
    clock: Clock | None = None,
    worker_seconds: float = WORKER_SECONDS,
) -> Facts:
    """Read everything that concerns a job: at most 23 requests here and 12 for each worker it may go to.

    Eleven at first: the job, its Workload, runtime and Namespace, LocalQueues, ClusterQueues, Cohorts,
    ResourceFlavors, AdmissionChecks, Nodes, and the Workloads without quota. Without a Workload one more, the job's
    events. Where a queue admits strictly in order, all Namespaces. For a job that waits for quota, up to `COHORT_LISTS`
    lists of Workloads with quota and `HOLDERS_ASKED` jobs.
    On a hub, the MultiKueueConfig. A list of more than 500 objects takes one request for each 500. Workers are read at
    once, each for `worker_seconds` at most.

    Raises:
        NoSuchJobError: there is no such job.
        UnreadableError: it is no job as we know them.
        KubeError: the cluster itself could not be read; what is wrong with a worker stands in `Facts.workers`.
    """
    try:
        job = await client.get(kind.resource, name, namespace)
    except NotFoundError as error:
        raise NoSuchJobError(namespace, name, kind.name) from error
    if problem := shapes.fault(kind.plural, job):
        raise UnreadableError(f"{kind.name} {namespace}/{name} cannot be read: {problem}")
    clock = clock or SystemClock()
    now = clock.now()
    labels = {names.LABEL_JOB_UID: job["metadata"]["uid"]}
    workloads, runtime, facts = await asyncio.gather(
        client.list_all(WORKLOADS, namespace, labels=labels),
        _runtime_exists(client, job),
        _read(client, Facts(job, now)),
    )
    whole, broken = _sorted_out(WORKLOADS, workloads)
    unread = (*facts.unread, *broken)
    facts = replace(facts, workload=newest(whole), runtime_exists=runtime, unread=unread)
    if facts.workload is None:
        uid = f"involvedObject.uid={job['metadata']['uid']}"
        return replace(facts, events=await _list(client, EVENTS, namespace, fields=uid) or ())
    facts = await _add_holders(client, facts)
    if workers is None:
        return facts
    return await _add_workers(
        client, facts, lambda cluster: _read_worker(workers, cluster, facts, clock, worker_seconds)
    )


async def _read(client: Client, facts: Facts) -> Facts:
    """Read the kinds that every answer needs."""
    namespace = facts.job["metadata"]["namespace"]
    kinds = (LOCAL_QUEUES, CLUSTER_QUEUES, COHORTS, RESOURCE_FLAVORS, ADMISSION_CHECKS, NODES, WORKLOADS, NAMESPACES)
    fields = {WORKLOADS: f"{_ADMITTED_TO}=", NAMESPACES: f"metadata.name={namespace}"}
    unread: list[str] = []
    lists = await asyncio.gather(*(_list(client, kind, fields=fields.get(kind), unread=unread) for kind in kinds))
    local_queues, cluster_queues, cohorts, flavors, checks, nodes, pending, spaces = lists
    read = replace(
        facts,
        namespace=next(iter(spaces or ()), None),
        local_queues=local_queues or (),
        cluster_queues=cluster_queues or (),
        cohorts=cohorts or (),
        flavors=flavors,
        checks=checks,
        nodes=nodes,
        pending=pending or (),
        unread=(*(kind.plural for kind, found in zip(kinds, lists, strict=True) if found is None), *unread),
    )
    return await _add_namespaces(client, read)


async def _add_namespaces(client: Client, facts: Facts) -> Facts:
    """Read whose Workloads a queue that admits strictly in order takes at all."""
    if not any(trees.get(queue, "spec", "queueingStrategy") == "StrictFIFO" for queue in facts.cluster_queues):
        return facts
    found = await _list(client, NAMESPACES)
    if found is None:
        return facts
    return replace(facts, namespace_labels={n["metadata"]["name"]: n["metadata"].get("labels") or {} for n in found})


async def _runtime_exists(client: Client, job: Tree) -> bool | None:
    """Return whether the runtime that a job names exists; None if we may not look, and for a kind without runtimes."""
    if kind_of(job) is not TRAIN_JOB:
        return None
    reference = trees.get(job, "spec", "runtimeRef") or {}
    name = reference.get("name") or ""
    try:
        if reference.get("kind") == names.TRAINING_RUNTIME:
            await client.get(TRAINING_RUNTIMES, name, job["metadata"]["namespace"])
        else:
            await client.get(CLUSTER_TRAINING_RUNTIMES, name)
    except NotFoundError:
        return False
    except ForbiddenError:
        return None
    return True


async def _add_holders(client: Client, facts: Facts) -> Facts:
    """Read who has the quota that the job waits for, and when they expect to end."""
    queue = facts.cluster_queue
    if queue is None or holds(facts.workload, "QuotaReserved"):
        return facts
    tree = QuotaTree(facts.cluster_queues, facts.cohorts)
    mine, *others = tree.members(queue["metadata"]["name"])
    using = [name for name in others if any(not q.is_zero() for q in tree.cluster_queues[name].usage.values())]
    lists = await asyncio.gather(
        *(_list(client, WORKLOADS, fields=f"{_ADMITTED_TO}={name}") for name in (mine, *using)[:COHORT_LISTS])
    )
    holding = [one for found in lists for one in found or () if not holds(one, FINISHED)]
    keys = [(one["metadata"]["namespace"], owner["name"]) for one in holding if (owner := train_job_of(one))]
    asked = keys[:HOLDERS_ASKED]
    jobs = await asyncio.gather(*(_get(client, TRAIN_JOBS, name, namespace) for namespace, name in asked))
    known = {key: job for key, job in zip(asked, jobs, strict=True) if job is not None}
    return replace(facts, holding=tuple(holding), holding_jobs=known)


async def _add_workers(client: Client, facts: Facts, read: Callable[[str], Awaitable[Facts | str]]) -> Facts:
    """Read each worker that the job's admission check may send it to."""
    check = dispatching_check(facts, facts.cluster_queue)
    config = await _get(client, MULTIKUEUE_CONFIGS, trees.get(check, "spec", "parameters", "name") or "")
    if check is not None and config is None:
        facts = replace(facts, unread=(*facts.unread, MULTIKUEUE_CONFIGS.plural))
    clusters = tuple(trees.get(config, "spec", "clusters") or ())
    found = await asyncio.gather(*map(read, clusters))
    return replace(facts, workers=dict(zip(clusters, found, strict=True)))


async def _read_worker(workers: Workers, cluster: str, hub: Facts, clock: Clock, seconds: float) -> Facts | str:
    """Return the facts of a worker, or why there are none."""
    assert hub.workload is not None  # noqa: S101 only then are workers read
    metadata = hub.workload["metadata"]
    try:
        async with answering(cluster, clock, seconds):
            client = await workers.client(cluster)
            copy, facts = await asyncio.gather(
                _get(client, WORKLOADS, metadata["name"], metadata["namespace"]),
                _read(client, Facts(hub.job, hub.now, cluster)),
            )
    except (HubError, DecodeError) as error:
        return str(error)
    return replace(facts, workload=copy, model=hub.workload)


def train_job_of(workload: Tree) -> Tree | None:
    """Return the reference to the TrainJob that a Workload stands for, or None if it is of another kind."""
    owner: Tree | None = trees.get(workload, "metadata", "ownerReferences", ("kind", names.TRAIN_JOB))
    return owner


async def _list(
    client: Client,
    kind: Resource,
    namespace: str | None = None,
    *,
    fields: str | None = None,
    unread: list[str] | None = None,
) -> tuple[Tree, ...] | None:
    """Return a list, or None if we may not see it or the cluster does not know the kind.

    Objects that are none of their kind are left out, and added to `unread`.
    """
    try:
        found = await client.list_all(kind, namespace, fields=fields)
    except (ForbiddenError, NotFoundError):
        return None
    whole, broken = _sorted_out(kind, found)
    if unread is not None:
        unread += broken
    return whole


def _sorted_out(kind: Resource, objects: Iterable[Tree]) -> tuple[tuple[Tree, ...], tuple[str, ...]]:
    """Return the objects that look like their kind, and a word on those that do not."""
    whole: list[Tree] = []
    problems: list[str] = []
    for one in objects:
        problem = shapes.fault(kind.plural, one)
        if problem:
            problems.append(problem)
        else:
            whole.append(one)
    if not problems:
        return tuple(whole), ()
    more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
    return tuple(whole), (f"a {kind.kind}{more}: {problems[0]}",)


async def _get(client: Client, kind: Resource, name: str, namespace: str | None = None) -> Tree | None:
    """Return an object, or None if there is none that we may see."""
    if not name:
        return None
    try:
        found = await client.get(kind, name, namespace)
    except (ForbiddenError, NotFoundError):
        return None
    return None if shapes.fault(kind.plural, found) else found
