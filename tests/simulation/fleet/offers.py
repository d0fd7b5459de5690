"""What administrators offer on a cluster of a fleet, as objects with the status that Kueue v0.19 gives them.

A ClusterQueue with the quota that the model has (`queue`), and a second one, `spare`, that nobody uses: a hub server
that is asked why a job waits may name it, and should not where it would not help. LocalQueues lead to both, flavors
have nodes, and on the hub MultiKueue's check sends what either admits to the workers' queues of the same names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulation.fleet import workload as wl
from tests.simulation.kueue import FLAVORS
from tests.simulation.people import MULTIKUEUE, NAMESPACE
from trainplane.kube.testing.verbs import collection_of
from trainplane.resources import (
    ADMISSION_CHECKS,
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    NODES,
    RESOURCE_FLAVORS,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.simulation.apiserver import ApiServer
    from trainplane.kube.testing.storage import Tree

COLLECTION = collection_of(CLUSTER_QUEUES)
QUEUE, SPARE = "queue", "spare"
"""LocalQueues: the one of all jobs, and the one of none."""
TAINTED = "tainted"
"""A flavor whose nodes no pod here tolerates."""


def install(server: ApiServer, *, is_hub: bool) -> None:
    """Put all but the ClusterQueues there."""
    for name, leads_to in ((QUEUE, wl.CLUSTER_QUEUE), (SPARE, SPARE)):
        meta = {"name": name, "namespace": NAMESPACE}
        server.put(LOCAL_QUEUES, {"metadata": meta, "spec": {"clusterQueue": leads_to, "stopPolicy": "None"}}, "admin")
    for name in FLAVORS:
        _put_flavor(server, name, {"nodeLabels": {"flavor": name}})
        node = {"metadata": {"name": name, "labels": {"flavor": name}}, "status": {"allocatable": {"pods": "110"}}}
        server.put(NODES, node, "admin")
    taint = {"key": "others", "value": "only", "effect": "NoSchedule"}
    _put_flavor(server, TAINTED, {"nodeLabels": {"flavor": TAINTED}, "nodeTaints": [taint]})
    if is_hub:
        parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": wl.CHECK}
        check = {
            "metadata": {"name": wl.CHECK},
            "spec": {"controllerName": MULTIKUEUE, "parameters": parameters},
            "status": {"conditions": [_active(active=True)]},
        }
        server.put(ADMISSION_CHECKS, check, "admin")


def cluster_queue(
    name: str, quota: Mapping[str, int], used: Mapping[str, int], *, policy: str = "None", is_hub: bool = False
) -> Tree:
    """Return a ClusterQueue of pods by flavor; on the hub, with MultiKueue's check."""
    flavors = [{"name": one, "resources": [{"name": "pods", "nominalQuota": str(n)}]} for one, n in quota.items()]
    spec: Tree = {
        "namespaceSelector": {},
        "queueingStrategy": "BestEffortFIFO",
        "stopPolicy": policy,
        "resourceGroups": [{"coveredResources": ["pods"], "flavors": flavors}],
    }
    if is_hub:
        spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": wl.CHECK, "onFlavors": []}]}
    reserved = [{"name": one, "resources": [{"name": "pods", "total": str(n)}]} for one, n in used.items()]
    status = {"conditions": [_active(active=policy == "None")], "flavorsReservation": reserved}
    return {"metadata": {"name": name}, "spec": spec, "status": status}


def _put_flavor(server: ApiServer, name: str, spec: Tree) -> None:
    server.put(RESOURCE_FLAVORS, {"metadata": {"name": name}, "spec": spec}, "admin")


def _active(*, active: bool) -> Tree:
    if active:
        return {"type": "Active", "status": "True", "reason": "Ready", "message": "Can admit new workloads"}
    said = "Can't admit new workloads: is stopped."
    return {"type": "Active", "status": "False", "reason": "Stopped", "message": said}


@dataclass
class Spare:
    """The second queue of a cluster: what it has, and whether it admits."""

    server: ApiServer
    is_hub: bool
    pods: int = 2
    policy: str = "None"
    flavor: str = FLAVORS[0]

    def offer(self, pods: int, policy: str, flavor: str) -> None:
        """Let it have so many pods of a flavor, and admit or not."""
        self.pods, self.policy, self.flavor = pods, policy, flavor
        self.publish()

    def publish(self) -> None:
        """Write the ClusterQueue."""
        quota, used = {self.flavor: self.pods}, {self.flavor: 0}
        queue = cluster_queue(SPARE, quota, used, policy=self.policy, is_hub=self.is_hub)
        self.server.put(CLUSTER_QUEUES, queue, "admin")

    def takes(self, pods: int) -> bool:
        """Return whether it would admit so many pods now."""
        return self.policy == "None" and self.flavor != TAINTED and pods <= self.pods
