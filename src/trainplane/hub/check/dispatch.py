"""How jobs get from the hub's queues to workers: LocalQueue, ClusterQueue, AdmissionCheck, MultiKueueConfig, worker.

From this follows what each worker must have: the LocalQueues whose jobs may be sent there, and their namespaces.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.hub.check.facts import each
from trainplane.hub.check.report import Check, Finding
from trainplane.kube.resource import Key
from trainplane.resources import ADMISSION_CHECKS, CLUSTER_QUEUES, LOCAL_QUEUES, MULTIKUEUE_CLUSTERS, MULTIKUEUE_CONFIGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainplane.api.tree import Tree
    from trainplane.hub.check.facts import ClusterFacts

_HOW = "docs/multikueue.md shows the objects"


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Which queues of the hub lead to which workers."""

    queues: Mapping[str, tuple[Key, ...]] = field(default_factory=dict)
    """By worker: the hub's LocalQueues whose jobs may be sent there."""
    findings: tuple[Finding, ...] = ()

    @property
    def all_queues(self) -> tuple[Key, ...]:
        """All LocalQueues of the hub that lead to any worker."""
        return tuple(sorted({queue for queues in self.queues.values() for queue in queues}))

    def namespaces(self, worker: str) -> tuple[str, ...]:
        """Return the namespaces from which jobs may be sent to a worker."""
        return tuple(sorted({queue.namespace for queue in self.queues.get(worker, ())}))

    def check(self) -> Check:
        """Return what the hub's report says of it."""
        queues, workers = len(self.all_queues), len(self.queues)
        summary = f"{_count(queues, 'LocalQueue')} to {_count(workers, 'worker')}"
        return Check("dispatch", summary, self.findings)


def trace(hub: ClusterFacts) -> Dispatch:
    """Follow the hub's objects from queues to workers."""
    clusters = {key.name for key, _ in each(hub, MULTIKUEUE_CLUSTERS)}
    findings: list[Finding] = []
    workers_of_check: dict[str, tuple[str, ...]] = {}
    for key, check in each(hub, ADMISSION_CHECKS):
        if trees.get(check, "spec", "controllerName") == names.MANAGED_BY_MULTIKUEUE:
            workers, found = _follow(hub, key.name, check, clusters)
            workers_of_check[key.name] = workers
            findings += found
    if not workers_of_check:
        problem = f"no AdmissionCheck has controllerName {names.MANAGED_BY_MULTIKUEUE}: nothing sends jobs to workers"
        findings.append(Finding("stops", problem, f"create a MultiKueueConfig and its AdmissionCheck; {_HOW}"))
    for name in sorted(clusters - {worker for workers in workers_of_check.values() for worker in workers}):
        problem = f"MultiKueueCluster {name} is in no MultiKueueConfig that an AdmissionCheck uses: no job goes there"
        findings.append(Finding("warns", problem, "add it to spec.clusters, or delete it"))
    queues, found = _queues(hub, workers_of_check)
    return Dispatch(queues, (*findings, *found))


def _follow(hub: ClusterFacts, name: str, check: Tree, clusters: set[str]) -> tuple[tuple[str, ...], list[Finding]]:
    """Return the workers behind an AdmissionCheck."""
    config_name = str(trees.get(check, "spec", "parameters", "name") or "")
    config = hub.seen(MULTIKUEUE_CONFIGS).get(Key("", config_name))
    if config is None:
        problem = f"AdmissionCheck {name} names MultiKueueConfig {config_name!r}, which does not exist"
        return (), [Finding("stops", problem, "create it, or correct spec.parameters.name of the check")]
    findings = []
    listed = tuple(trees.get(config, "spec", "clusters") or ())
    for missing in (cluster for cluster in listed if cluster not in clusters):
        problem = f"MultiKueueConfig {config_name} lists cluster {missing}, of which there is no MultiKueueCluster"
        findings.append(Finding("warns", problem, "create it, or take it off spec.clusters"))
    if (inactive := inactivity(check)) is not None:
        findings.append(Finding("stops", f"AdmissionCheck {name} is not active: {inactive}", "repair what it says"))
    return tuple(cluster for cluster in listed if cluster in clusters), findings


def _queues(
    hub: ClusterFacts, workers_of_check: Mapping[str, tuple[str, ...]]
) -> tuple[dict[str, tuple[Key, ...]], list[Finding]]:
    """Return the LocalQueues that lead to each worker."""
    findings: list[Finding] = []
    reached: dict[str, set[Key]] = defaultdict(set)
    by_cluster_queue: dict[str, list[Key]] = defaultdict(list)
    for key, queue in each(hub, LOCAL_QUEUES):
        by_cluster_queue[str(trees.get(queue, "spec", "clusterQueue") or "")].append(key)
    dispatching = 0
    for key, cluster_queue in each(hub, CLUSTER_QUEUES):
        workers = [worker for check in checks_of(cluster_queue) for worker in workers_of_check.get(check, ())]
        if not workers:
            continue
        dispatching += 1
        if (inactive := inactivity(cluster_queue)) is not None:
            problem = f"ClusterQueue {key.name} of the hub is not active: {inactive}"
            findings.append(Finding("stops", problem, "repair what it says"))
        if not by_cluster_queue[key.name]:
            problem = f"ClusterQueue {key.name} dispatches to {', '.join(workers)}, but no LocalQueue leads to it"
            findings.append(Finding("warns", problem, "create a LocalQueue in the namespace of those who may use it"))
        for worker in workers:
            reached[worker].update(by_cluster_queue[key.name])
    if workers_of_check and not dispatching:
        checks = ", ".join(workers_of_check)
        problem = f"no ClusterQueue has AdmissionCheck {checks}: no queue dispatches to workers"
        findings.append(Finding("stops", problem, f"add it to spec.admissionChecksStrategy of a ClusterQueue; {_HOW}"))
    return {worker: tuple(sorted(queues)) for worker, queues in reached.items()}, findings


def checks_of(cluster_queue: Tree) -> Iterator[str]:
    """Iterate over the names of a ClusterQueue's AdmissionChecks."""
    for entry in trees.get(cluster_queue, "spec", "admissionChecksStrategy", "admissionChecks") or ():
        yield str(entry["name"])


def inactivity(obj: Tree) -> str | None:
    """Return why Kueue has an object inactive, None if it is active or Kueue has not looked at it yet."""
    condition = trees.get(obj, "status", "conditions", ("type", "Active"))
    if condition is None or condition.get("status") == "True":
        return None
    return str(condition.get("message") or condition.get("reason") or "Kueue does not say why")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
