"""Runtimes and priority classes: what hub and worker must have alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import tree as trees
from trainplane.hub import runtimes
from trainplane.hub.check.facts import Unseen, each
from trainplane.hub.check.report import Check, Finding
from trainplane.kube.resource import Key
from trainplane.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    NAMESPACES,
    PRIORITY_CLASSES,
    TRAINING_RUNTIMES,
    WORKLOAD_PRIORITY_CLASSES,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Tree
    from trainplane.hub.check.facts import ClusterFacts
    from trainplane.kube.resource import Resource

_SYNC = "trainplane fleet sync --apply"


def wanted(hub: ClusterFacts, namespaces: tuple[str, ...]) -> Iterator[tuple[Resource, Key, Tree]]:
    """Iterate over the hub's runtimes that a worker must have, given the namespaces that send jobs there."""
    for key, runtime in each(hub, CLUSTER_TRAINING_RUNTIMES):
        yield CLUSTER_TRAINING_RUNTIMES, key, runtime
    for key, runtime in each(hub, TRAINING_RUNTIMES):
        if key.namespace in namespaces:
            yield TRAINING_RUNTIMES, key, runtime


def judge_runtimes(hub: ClusterFacts, name: str, worker: ClusterFacts, namespaces: tuple[str, ...]) -> Check:
    """Return whether a worker has the hub's runtimes, and has them alike."""
    findings = [*unseen(worker, CLUSTER_TRAINING_RUNTIMES), *unseen(worker, TRAINING_RUNTIMES)]
    equal = total = 0
    for resource, key, runtime in wanted(hub, namespaces):
        if isinstance(worker.of(resource), Unseen) or is_absent(worker, key.namespace):
            continue
        total += 1
        there = worker.seen(resource).get(key)
        if there is None:
            problem = f"{resource.kind} {key} does not exist here: a job that uses it cannot be computed"
            findings.append(Finding("stops", problem, _SYNC))
        elif not runtimes.equal(runtime, there):
            findings.append(_differs(name, resource, key, runtime, there))
        else:
            equal += 1
    return Check("runtimes", f"{equal} of {total} equal the hub's", tuple(findings))


def is_absent(cluster: ClusterFacts, namespace: str) -> bool:
    """Return whether a namespace is known not to exist: then that is what is wrong, not what is not in it."""
    known = cluster.of(NAMESPACES)
    return bool(namespace) and not isinstance(known, Unseen) and Key("", namespace) not in known


def judge_priorities(hub: ClusterFacts, worker: ClusterFacts, namespaces: tuple[str, ...]) -> Check:
    """Return whether a worker has the hub's WorkloadPriorityClasses, and the PriorityClasses that runtimes name."""
    findings = [*unseen(worker, WORKLOAD_PRIORITY_CLASSES)]
    if not findings:
        findings += _workload_priorities(hub, worker)
    named = sorted({name for _, _, runtime in wanted(hub, namespaces) for name in pod_priorities(runtime)})
    there = worker.of(PRIORITY_CLASSES)
    if isinstance(there, Unseen):
        findings += unseen(worker, PRIORITY_CLASSES) if named else ()
    else:
        findings += [
            Finding(
                "stops",
                f"PriorityClass {name}, which runtimes of the hub name, does not exist here: their pods are refused",
                "create it here as on the hub",
            )
            for name in named
            if Key("", name) not in there
        ]
    classes = ", ".join(key.name for key, _ in each(worker, WORKLOAD_PRIORITY_CLASSES)) or "none"
    return Check("priorities", f"WorkloadPriorityClasses: {classes}", tuple(findings))


def pod_priorities(runtime: Tree) -> Iterator[str]:
    """Iterate over the PriorityClasses that the pods of a runtime name."""
    for job in trees.get(runtime, "spec", "template", "spec", "replicatedJobs") or ():
        name = trees.get(job, "template", "spec", "template", "spec", "priorityClassName")
        if name and not str(name).startswith("system-"):
            yield str(name)


def unseen(worker: ClusterFacts, resource: Resource) -> tuple[Finding, ...]:
    """Return the finding that a resource cannot be read, if so; one that is not served at all is told elsewhere."""
    found = worker.of(resource)
    if not isinstance(found, Unseen) or found.why == "missing":
        return ()
    group = f".{resource.group}" if resource.group else ""
    what = f"{resource.plural}{group}"
    if found.why == "failed":
        return (Finding("unseen", f"{what} could not be read: {found.detail}", "try again"),)
    problem = f"{what} cannot be seen: the credentials that are used to look may not list them"
    return (Finding("unseen", problem, "look with your own credentials: --worker NAME[=CONTEXT]"),)


def _differs(name: str, resource: Resource, key: Key, runtime: Tree, there: Tree) -> Finding:
    text = runtimes.diff(there, runtime, name, "hub")
    what = f"{resource.kind} {key} differs from the hub's"
    if runtimes.would_run_alike(runtime, there):
        return Finding("warns", f"{what}: a job that uses it runs here otherwise than elsewhere", _SYNC, text)
    problem = f"{what}: Kueue finds other pods here and gives a job that uses it back, again and again"
    return Finding("stops", problem, _SYNC, text)


def _workload_priorities(hub: ClusterFacts, worker: ClusterFacts) -> Iterator[Finding]:
    there = worker.seen(WORKLOAD_PRIORITY_CLASSES)
    for key, here in each(hub, WORKLOAD_PRIORITY_CLASSES):
        found = there.get(key)
        if found is None:
            problem = (
                f"WorkloadPriorityClass {key} does not exist here: jobs of the hub keep its value, but jobs that are"
            )
            yield Finding("warns", f"{problem} made here cannot have it", "create it here as on the hub")
        elif found.get("value") != here.get("value"):
            problem = (
                f"WorkloadPriorityClass {key} has value {found.get('value')} here and {here.get('value')} on the hub"
            )
            yield Finding("warns", problem, "give it the same value: jobs keep the hub's, jobs made here get this one")
