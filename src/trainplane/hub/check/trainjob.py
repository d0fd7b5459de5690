"""One job's way: would this worker take it, has it what the pods name, could its quota ever hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.quantity import ZERO
from trainplane.hub.check.facts import Unseen
from trainplane.hub.check.kinds import refusal
from trainplane.hub.check.queues import cluster_queue_of, judge_admission
from trainplane.hub.check.report import Check, Finding
from trainplane.hub.kinds import kind_of
from trainplane.hub.pending.flavors import assign
from trainplane.hub.pending.quota import QuotaTree
from trainplane.resources import CLUSTER_QUEUES, COHORTS, LOCAL_QUEUES, RESOURCE_FLAVORS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainplane.api.quantity import Quantity
    from trainplane.api.tree import Tree
    from trainplane.hub.check.dispatch import Dispatch
    from trainplane.hub.check.facts import ClusterFacts, Facts, Reference, WorkerFacts
    from trainplane.hub.check.needs import Needs
    from trainplane.hub.pending.flavors import Shortfall


def judge_on_hub(facts: Facts, needs: Needs, dispatch: Dispatch) -> Check:
    """Return whether the hub would send a job anywhere."""
    job = facts.trainjob or {}
    kind, findings = kind_of(job), []
    if needs.problem:
        findings.append(Finding("stops", f"its pods cannot be computed: {needs.problem}", f"correct the {kind.name}"))
    if not kind.is_mirrored:
        findings.append(Finding("stops", refusal(kind), f"queue the {kind.name} on the cluster where it is to run"))
    managed_by = kind.managed_by(job)
    if managed_by not in {names.MANAGED_BY_MULTIKUEUE, kind.manager}:
        problem = f"{kind.field('managedBy')} is {managed_by!r}: MultiKueue leaves it alone"
        findings.append(Finding("stops", problem, "leave the field out: Kueue sets it"))
    if needs.queue is None:
        problem = f"it has no label {names.LABEL_QUEUE}: it runs on the hub, or nowhere"
        findings.append(Finding("stops", problem, f"name one of {_queues(dispatch, needs.namespace)}"))
    elif needs.queue not in dispatch.all_queues:
        exists = needs.queue in facts.hub.seen(LOCAL_QUEUES)
        said = "dispatches to no worker" if exists else "does not exist on the hub"
        problem = f"its queue {needs.queue} {said}"
        findings.append(Finding("stops", problem, f"name one of {_queues(dispatch, needs.namespace)}"))
    else:  # the hub's Kueue reserves quota of its own before it asks any worker
        findings += [*judge_admission(facts.hub, needs.queue), *_quota(facts.hub, needs)]
    return Check("trainjob", _summary(needs), tuple(findings))


def judge_on_worker(worker: WorkerFacts, cluster: ClusterFacts, needs: Needs, dispatch: Dispatch) -> Check:
    """Return whether a job would run on a worker."""
    if needs.problem or needs.queue is None:
        return Check("trainjob", "nothing can be said before the hub knows what to do with it")
    if needs.queue not in dispatch.queues.get(worker.name, ()):
        return Check("trainjob", f"queue {needs.queue} does not send jobs here")
    findings = [
        finding
        for reference, there in worker.references.items()
        for finding in _reference(reference, there, needs.namespace)
    ]
    findings += _quota(cluster, needs)
    named = len(worker.references)
    return Check("trainjob", f"{_summary(needs)}, names {named} object{'' if named == 1 else 's'}", tuple(findings))


def _summary(needs: Needs) -> str:
    pods = sum(pod_set.count for pod_set in needs.pod_sets)
    total: dict[str, Quantity] = {}
    for pod_set in needs.pod_sets:
        for resource, amount in pod_set.total.items():
            total[resource] = total.get(resource, ZERO) + amount
    asks = "".join(f", {amount} {resource}" for resource, amount in sorted(total.items()))
    return f"{needs.namespace}/{needs.name}: {pods} pod{'' if pods == 1 else 's'}{asks}"


def _queues(dispatch: Dispatch, namespace: str) -> str:
    mine = [queue.name for queue in dispatch.all_queues if queue.namespace == namespace]
    return ", ".join(mine) or f"the queues that dispatch (namespace {namespace} has none)"


def _reference(reference: Reference, there: bool | Unseen, namespace: str) -> Iterator[Finding]:
    place = f" in namespace {namespace}" if reference.resource.namespaced else ""
    if isinstance(there, Unseen):
        problem = f"{reference}{place}, named by {reference.by}, cannot be seen: {there.detail}"
        yield Finding("unseen", problem, "look with your own credentials: --worker NAME[=CONTEXT]")
    elif not there:
        problem = f"{reference}, named by {reference.by}, does not exist here{place}"
        remedy = "create it here: MultiKueue copies the job, and nothing that it names"
        yield Finding("stops" if reference.fatal else "warns", problem, remedy)


def _quota(cluster: ClusterFacts, needs: Needs) -> Iterator[Finding]:
    if needs.queue is None:
        return
    name, cluster_queue = cluster_queue_of(cluster, needs.queue)
    if cluster_queue is None:
        return
    queues = [_unused(queue) for queue in cluster.seen(CLUSTER_QUEUES).values()]
    tree = QuotaTree(queues, cluster.seen(COHORTS).values())
    assignment = assign(_unused(cluster_queue), tree.cluster_queues[name], _flavors(cluster), needs.pod_sets)
    blind = trees.get(cluster_queue, "spec", "cohortName") and isinstance(cluster.of(COHORTS), Unseen)
    if isinstance(cluster.of(RESOURCE_FLAVORS), Unseen):
        problem = f"whether the pods tolerate and select what the flavors of ClusterQueue {name} ask cannot be seen"
        yield Finding(
            "unseen", problem, "allow list of resourceflavors, or look with your own: --worker NAME[=CONTEXT]"
        )
    for shortfall in assignment.shortfalls:
        problem, remedy = _lack(name, shortfall)
        if blind and shortfall.lack == "Limit":
            yield Finding("unseen", f"{problem}; what its cohort has beside it cannot be seen", "allow list of cohorts")
        else:
            yield Finding("stops", problem, remedy)


def _unused(cluster_queue: Tree) -> Tree:
    """Return a ClusterQueue as if nobody used it: this is about what can ever be."""
    return {key: value for key, value in cluster_queue.items() if key != "status"}


def _flavors(cluster: ClusterFacts) -> Mapping[str, Tree]:
    """Return the flavors by name; where they cannot be seen, each that a queue names is taken to fit any pod."""
    known = cluster.of(RESOURCE_FLAVORS)
    if not isinstance(known, Unseen):
        return {key.name: flavor for key, flavor in known.items()}
    return {
        flavor["name"]: {}
        for queue in cluster.seen(CLUSTER_QUEUES).values()
        for group in trees.get(queue, "spec", "resourceGroups") or ()
        for flavor in group.get("flavors") or ()
    }


def _lack(name: str, shortfall: Shortfall) -> tuple[str, str]:
    pods = f"pods of {shortfall.pod_set}"
    if shortfall.lack == "Uncovered":
        problem = f"ClusterQueue {name} has no quota for {shortfall.resource}, of which the {pods} ask {shortfall.need}"
        return problem, f"add {shortfall.resource} to its spec.resourceGroups"
    if shortfall.lack == "Mismatch":
        problem = f"flavor {shortfall.flavor} of ClusterQueue {name} does not fit the {pods}: {shortfall.detail}"
        return problem, "change the flavor, or what the pods tolerate and select"
    most = f"can never give more than {shortfall.potential} {shortfall.resource} in flavor {shortfall.flavor}"
    problem = f"ClusterQueue {name} {most}; with the {pods} the job asks {shortfall.need}"
    return problem, "raise its quota, or ask for less"
