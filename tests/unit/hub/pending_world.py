"""A cluster with queues, in memory: what the tests of "why is it queued?" begin with and change."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trainplane.hub.pending.facts import Facts

if TYPE_CHECKING:
    from trainplane.hub.pending.answer import Answer

Tree = dict[str, Any]

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
EARLIER = "2026-03-01T11:00:00Z"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
GPU = "nvidia.com/gpu"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
RESERVED = {"QuotaReserved": ("True", "QuotaReserved", "")}
"""Conditions of a Workload that has its quota."""


def job(
    name: str = "job", *, namespace: str = "team", queue: str | None = "queue", nodes: int = 4, **spec: Any
) -> Tree:
    labels = {QUEUE_LABEL: queue} if queue else {}
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels},
        "spec": {"suspend": True, "trainer": {"numNodes": nodes}, "runtimeRef": {"name": "torch"}, **spec},
        "status": {},
    }


def pod_set(name: str = "node", *, count: int = 4, requests: dict[str, str] | None = None, **spec: Any) -> Tree:
    container = {"name": "node", "resources": {"requests": requests or {GPU: "2"}}}
    return {"name": name, "count": count, "template": {"spec": {"containers": [container], **spec}}}


def workload(
    name: str = "job",
    *pod_sets: Tree,
    namespace: str = "team",
    queue: str = "queue",
    priority: int = 0,
    created: str = EARLIER,
    conditions: dict[str, tuple[str, str, str]] | None = None,
    **status: Any,
) -> Tree:
    """Return a Workload of the TrainJob `name`; `conditions` are (status, reason, message) by type."""
    listed = [
        {"type": kind, "status": state, "reason": reason, "message": message, "lastTransitionTime": EARLIER}
        for kind, (state, reason, message) in (conditions or {}).items()
    ]
    return {
        "metadata": {
            "name": f"trainjob-{name}-abcde",
            "namespace": namespace,
            "uid": f"wl-{name}",
            "creationTimestamp": created,
            "ownerReferences": [{"kind": "TrainJob", "name": name}],
        },
        "spec": {"queueName": queue, "priority": priority, "podSets": list(pod_sets or (pod_set(),))},
        "status": {"conditions": listed, **status},
    }


def holder(
    name: str, amount: str, *, queue: str = "cq", namespace: str = "team", flavor: str = "a", **spec: Any
) -> Tree:
    """Return a Workload that holds GPUs."""
    assigned = {"name": "node", "count": 4, "flavors": {GPU: flavor}, "resourceUsage": {GPU: amount}}
    admission = {"clusterQueue": queue, "podSetAssignments": [assigned]}
    told = {"QuotaReserved": ("True", "QuotaReserved", ""), "Admitted": ("True", "Admitted", "")}
    tree = workload(name, namespace=namespace, conditions=told, admission=admission)
    tree["spec"] |= spec
    return tree


def cluster_queue(
    name: str = "cq", flavors: dict[str, dict[str, str]] | None = None, *, used: str = "0", **spec: Any
) -> Tree:
    """Return a ClusterQueue; `flavors` are amounts by flavor and resource, `used` GPUs of the first flavor."""
    flavors = flavors or {"a": {GPU: "8"}}
    covered = list(dict.fromkeys(resource for amounts in flavors.values() for resource in amounts))
    entries = [
        {"name": flavor, "resources": [{"name": r, "nominalQuota": q} for r, q in amounts.items()]}
        for flavor, amounts in flavors.items()
    ]
    first = next(iter(flavors))
    return {
        "metadata": {"name": name},
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": covered, "flavors": entries}],
            **spec,
        },
        "status": {
            "conditions": [{"type": "Active", "status": "True"}],
            "flavorsReservation": [{"name": first, "resources": [{"name": GPU, "total": used}]}],
        },
    }


def local_queue(name: str = "queue", *, namespace: str = "team", leads_to: str = "cq", **spec: Any) -> Tree:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"clusterQueue": leads_to, **spec}}


def flavor(name: str = "a", **spec: Any) -> Tree:
    return {"metadata": {"name": name}, "spec": spec}


def check(name: str, *, controller: str = "example.com/check", active: str = "True", **spec: Any) -> Tree:
    conditions = [{"type": "Active", "status": active, "message": "so it is"}]
    return {
        "metadata": {"name": name},
        "spec": {"controllerName": controller, **spec},
        "status": {"conditions": conditions},
    }


def node(
    name: str = "n", *, labels: dict[str, str] | None = None, taints: list[Tree] | None = None, **offers: str
) -> Tree:
    allocatable = {"cpu": "32", "memory": "256Gi", "pods": "110", GPU: "8"} | {
        k.replace("gpu", GPU): v for k, v in offers.items()
    }
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": taints or []},
        "status": {"allocatable": allocatable},
    }


@dataclass
class World:
    """A team with a queue of 8 GPUs, and a job of 4 nodes with 2 GPUs each that waits in it."""

    job: Tree = field(default_factory=job)
    workload: Tree | None = field(default_factory=workload)
    namespace: Tree | None = field(default_factory=lambda: {"metadata": {"name": "team", "labels": {"a": "b"}}})
    local_queues: list[Tree] = field(default_factory=lambda: [local_queue()])
    cluster_queues: list[Tree] = field(default_factory=lambda: [cluster_queue()])
    cohorts: list[Tree] = field(default_factory=list)
    flavors: list[Tree] | None = field(default_factory=lambda: [flavor()])
    checks: list[Tree] | None = field(default_factory=list)
    nodes: list[Tree] | None = field(default_factory=lambda: [node(f"n{number}") for number in range(4)])
    others: list[Tree] = field(default_factory=list)
    """Workloads that wait beside the job's."""
    more: dict[str, Any] = field(default_factory=dict)
    """Other fields of Facts."""

    @property
    def queue(self) -> Tree:
        """The job's ClusterQueue."""
        return self.cluster_queues[0]

    def use(self, amount: str) -> None:
        """Let others use GPUs of the job's queue."""
        self.queue["status"]["flavorsReservation"][0]["resources"][0]["total"] = amount

    def facts(self) -> Facts:
        mine = [self.workload] if self.workload is not None else []
        return Facts(
            self.job,
            NOW,
            workload=self.workload,
            namespace=self.namespace,
            local_queues=tuple(self.local_queues),
            cluster_queues=tuple(self.cluster_queues),
            cohorts=tuple(self.cohorts),
            flavors=None if self.flavors is None else tuple(self.flavors),
            checks=None if self.checks is None else tuple(self.checks),
            nodes=None if self.nodes is None else tuple(self.nodes),
            pending=(*mine, *self.others),
            **self.more,
        )


def codes(answer: Answer) -> list[str]:
    return [cause.code for cause in answer.causes]


def kinds(answer: Answer) -> list[str]:
    return [suggestion.kind for suggestion in answer.suggestions]
