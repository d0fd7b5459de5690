"""Queues and quota of the namespace: whether there is a way for a job to be admitted, and room on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import quantity
from trainplane.api import tree as trees
from trainplane.client.doctor.facts import Unseen
from trainplane.client.doctor.report import Finding
from trainplane.resources import HUB_TRAIN_JOBS, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainplane.api.tree import Tree
    from trainplane.client.doctor.facts import Cluster


def judge_queues(cluster: Cluster, namespace: str) -> Iterator[Finding]:
    """Say what there is of Kueue and of quota, for jobs of the namespace."""
    served = cluster.served.get(WORKLOADS.api_version)
    if isinstance(served, Unseen) and served.why == "missing":
        yield Finding("queues", "ok", "there is no Kueue: jobs start at once, and wait for room on nodes alone")
    elif isinstance(served, Unseen):
        remedy = "ask an admin for the ClusterRole system:discovery"
        yield Finding("queues", "unknown", f"whether there is Kueue cannot be seen: {served.detail}", remedy)
    else:
        yield from _local_queues(cluster, namespace)
        yield from _fleet(cluster)
    yield from _quota(cluster.quotas, namespace)


def _local_queues(cluster: Cluster, namespace: str) -> Iterator[Finding]:
    version = f" {cluster.engines['Kueue']}" if "Kueue" in cluster.engines else ""
    if isinstance(cluster.queues, Unseen):
        remedy = "ask an admin for the role kueue-batch-user-role"
        yield Finding("queues", "unknown", f"queues of {namespace} cannot be seen: {cluster.queues.detail}", remedy)
        return
    if not cluster.queues:
        yield Finding(
            "queues", "warning", f"Kueue{version} is here, and namespace {namespace} has no LocalQueue: no job can be "
            "queued from it", "ask an admin for one, if jobs of this namespace are to share quota",
        )  # fmt: skip
    for queue in cluster.queues:
        name = trees.text(queue, "metadata", "name")
        target = trees.text(queue, "spec", "clusterQueue")
        active = trees.get(queue, "status", "conditions", ("type", "Active")) or {}
        if active.get("status") == "False":
            said = str(active.get("message") or active.get("reason") or "it does not say why")[:200]
            text = f"LocalQueue {name} takes no jobs: {said}"
            yield Finding("queues", "wrong", text, f"ask an admin to look at ClusterQueue {target}")
        else:
            yield Finding("queues", "ok", f"LocalQueue {name} leads to ClusterQueue {target} (Kueue{version})")


def _fleet(cluster: Cluster) -> Iterator[Finding]:
    if isinstance(cluster.workers, Unseen) or not cluster.workers:
        return
    text = f"this is a hub: MultiKueue sends jobs to {cluster.workers} workers"
    if isinstance(cluster.served.get(HUB_TRAIN_JOBS.api_version), Unseen):
        remedy = "install the hub view (docs/hub.md): without it pods, events and logs of workers are not seen here"
        yield Finding("queues", "warning", f"{text}, and there is no hub view", remedy)
    else:
        yield Finding("queues", "ok", f"{text}; trainplane fleet check looks at each")


def _quota(quotas: Sequence[Tree] | Unseen, namespace: str) -> Iterator[Finding]:
    if isinstance(quotas, Unseen):
        remedy = "ask an admin for a role that lets you list resourcequotas"
        yield Finding("queues", "unknown", f"quota of {namespace} cannot be seen: {quotas.detail}", remedy)
        return
    for quota in quotas:
        name = trees.text(quota, "metadata", "name")
        full = [resource for resource in trees.fields(quota, "status", "hard") if _is_full(quota, resource)]
        if full:
            text = f"ResourceQuota {name} of {namespace} is used up: {', '.join(full)}"
            yield Finding("queues", "warning", text, "delete what you do not need, or ask an admin for more")
        else:
            yield Finding("queues", "ok", f"ResourceQuota {name} of {namespace} has room")


def _is_full(quota: Tree, resource: str) -> bool:
    try:
        hard, used = (quantity.parse(str(trees.get(quota, "status", part, resource))) for part in ("hard", "used"))
    except ValueError:
        return False
    return bool(used >= hard)
