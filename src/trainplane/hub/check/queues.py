"""Namespaces and queues of a worker: where a job that is sent there would land.

MultiKueue keeps a job's namespace and the name of its LocalQueue, so both must be on the worker; which ClusterQueue the
LocalQueue leads to there, and with what quota, is the worker's own affair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.hub.check.dispatch import inactivity
from trainplane.hub.check.facts import Unseen
from trainplane.hub.check.report import Check, Finding
from trainplane.hub.check.runtimes import is_absent, unseen
from trainplane.hub.pending.nodes import selects
from trainplane.kube.resource import Key
from trainplane.resources import CLUSTER_QUEUES, LOCAL_QUEUES, NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Tree
    from trainplane.hub.check.facts import ClusterFacts

_SHOWN: Final = 6
"""Names that a summary lists."""


def judge_namespaces(worker: ClusterFacts, namespaces: tuple[str, ...]) -> Check:
    """Return whether a worker has the namespaces that send jobs to it."""
    known = worker.of(NAMESPACES)
    if isinstance(known, Unseen):
        inhabited = {key.namespace for key in worker.seen(LOCAL_QUEUES)}
        doubtful = [name for name in namespaces if name not in inhabited]
        findings = unseen(worker, NAMESPACES) if doubtful else ()
    else:
        findings = tuple(
            Finding(
                "stops", f"namespace {name} does not exist here", f"create it here: kubectl create namespace {name}"
            )
            for name in namespaces
            if Key("", name) not in known
        )
    return Check("namespaces", _some(namespaces) or "none sends jobs here", findings)


def judge_queues(hub: ClusterFacts, worker: ClusterFacts, queues: tuple[Key, ...]) -> Check:
    """Return whether the hub's queues have their counterparts on a worker, and whether those admit anything."""
    findings = [*unseen(worker, LOCAL_QUEUES), *unseen(worker, CLUSTER_QUEUES)]
    if not findings:
        for key in queues:
            if not is_absent(worker, key.namespace):
                findings += _queue(hub, worker, key)
    return Check("queues", _some(queues) or "none leads here", tuple(dict.fromkeys(findings)))


def cluster_queue_of(cluster: ClusterFacts, queue: Key) -> tuple[str, Tree | None]:
    """Return the name of the ClusterQueue that a LocalQueue leads to, and the ClusterQueue if it exists."""
    name = str(trees.get(cluster.seen(LOCAL_QUEUES).get(queue), "spec", "clusterQueue") or "")
    return name, cluster.seen(CLUSTER_QUEUES).get(Key("", name))


def covered(cluster_queue: Tree | None) -> set[str]:
    """Return the resources that a ClusterQueue has quotas for."""
    groups = trees.get(cluster_queue, "spec", "resourceGroups") or ()
    return {resource for group in groups for resource in group.get("coveredResources") or ()}


def _queue(hub: ClusterFacts, worker: ClusterFacts, key: Key) -> Iterator[Finding]:
    local_queue = worker.seen(LOCAL_QUEUES).get(key)
    if local_queue is None:
        remedy = (
            f"create it here, with spec.clusterQueue a ClusterQueue of this worker (on the hub it is {_hub(hub, key)})"
        )
        yield Finding("stops", f"LocalQueue {key} does not exist here", remedy)
        return
    name, cluster_queue = cluster_queue_of(worker, key)
    if cluster_queue is None:
        problem = f"LocalQueue {key} leads to ClusterQueue {name}, which does not exist here"
        yield Finding("stops", problem, "create it here, or name another in spec.clusterQueue")
        return
    yield from judge_admission(worker, key)
    yield from _covering(hub, key, name, cluster_queue)


def judge_admission(cluster: ClusterFacts, key: Key) -> Iterator[Finding]:
    """Return what keeps a queue that exists, and the ClusterQueue that it leads to, from admitting anything."""
    name, cluster_queue = cluster_queue_of(cluster, key)
    yield from _stopped(f"LocalQueue {key}", cluster.seen(LOCAL_QUEUES)[key])
    if cluster_queue is not None:
        yield from _stopped(f"ClusterQueue {name}", cluster_queue)
        yield from _selected(cluster, key.namespace, name, cluster_queue)


def _stopped(what: str, queue: Tree) -> Iterator[Finding]:
    policy = trees.get(queue, "spec", "stopPolicy") or "None"
    if policy != "None":
        yield Finding("stops", f"{what} is stopped here (spec.stopPolicy: {policy})", "set it to None to let jobs in")
    elif (inactive := inactivity(queue)) is not None:
        yield Finding("stops", f"{what} is not active here: {inactive}", "repair what it says")


def _selected(worker: ClusterFacts, namespace: str, name: str, cluster_queue: Tree) -> Iterator[Finding]:
    known = worker.seen(NAMESPACES).get(Key("", namespace))
    if known is None:
        return
    selector = trees.get(cluster_queue, "spec", "namespaceSelector")
    if not selects(selector, trees.get(known, "metadata", "labels") or {}):
        said = "has no namespaceSelector, and so takes no namespace" if selector is None else "does not select it"
        problem = f"jobs of namespace {namespace} are not admitted here: ClusterQueue {name} {said}"
        yield Finding("stops", problem, "change spec.namespaceSelector ({} takes all), or the namespace's labels")


def _covering(hub: ClusterFacts, key: Key, name: str, cluster_queue: Tree) -> Iterator[Finding]:
    _, of_hub = cluster_queue_of(hub, key)
    missing = sorted(covered(of_hub) - covered(cluster_queue))
    if missing:
        problem = f"ClusterQueue {name} has no quota for {', '.join(missing)}, which the hub's has for queue {key}"
        yield Finding("warns", f"{problem}: jobs that ask for it never start here", "add it to spec.resourceGroups")


def _hub(hub: ClusterFacts, key: Key) -> str:
    return cluster_queue_of(hub, key)[0]


def _some(named: tuple[Key | str, ...]) -> str:
    """List the first few: a fleet may have hundreds."""
    rest = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    return ", ".join(map(str, named[:_SHOWN])) + rest
