"""What would let a job start: fewer nodes, another queue, another cluster, or patience."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.quantity import ZERO, Quantity
from trainplane.hub.kinds import kind_of
from trainplane.hub.pending.answer import Holder, Suggestion
from trainplane.hub.pending.assessment import Assessment
from trainplane.hub.pending.facts import dispatching_check, named
from trainplane.hub.pending.nodes import selects
from trainplane.hub.pending.state import label_queue
from trainplane.hub.pending.workload import condition, ends_at, reserved_at, usage_of
from trainplane.hub.placement import nominated_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from trainplane.api.tree import Tree
    from trainplane.hub.pending.answer import ClusterAnswer
    from trainplane.hub.pending.facts import Facts


def suggestions(
    case: Assessment, workers: Sequence[Assessment], answers: Sequence[ClusterAnswer], *, admits: bool = True
) -> tuple[Suggestion, ...]:
    """Return what would let the job start, what would do so now first.

    `workers` are the same job before the queues of the workers it may go to, as far as they could be read; those that
    admit nothing do not count. Without any asked (`Facts.workers`) the job is taken to run on this cluster. Unless the
    job's own queue `admits`, only another queue helps.
    """
    workers = [one for one in workers if _admits(one.facts, one.facts.local_queue or {}, one.queue)]
    found = [*_other_queues(case)]
    if admits:
        found = [*_fewer_nodes(case, workers), *found, *_other_clusters(case, answers), *_patience(case)]
    return tuple(sorted(found, key=lambda suggestion: not suggestion.now))


def holders(case: Assessment) -> tuple[Holder, ...]:
    """Return who has the quota that is lacking, jobs of the asker's namespace by name, the others summed up."""
    lacking = [each for each in case.assignment.shortfalls if not each.spared]
    wanted = list(dict.fromkeys(each.of for each in lacking if each.lack == "Quota"))
    found: list[Holder] = []
    for of in wanted:
        others: dict[str, list[tuple[Tree, Quantity]]] = {}
        for workload in case.facts.holding:
            amount = usage_of(workload).get(of, ZERO)
            queue = trees.get(workload, "status", "admission", "clusterQueue")
            if amount.is_zero():
                continue
            if workload["metadata"]["namespace"] == case.facts.job["metadata"]["namespace"]:
                job, since = _owner(workload), reserved_at(workload)
                end = _end(case.facts, workload)
                found.append(Holder(queue, of.flavor, of.resource, str(amount), 1, job, since, end))
            else:
                others.setdefault(queue, []).append((workload, amount))
        for queue, shares in others.items():
            total = sum((amount for _, amount in shares), ZERO)
            ends = [end for one, _ in shares if (end := _end(case.facts, one)) is not None]
            found.append(Holder(queue, of.flavor, of.resource, str(total), len(shares), ends=min(ends, default=None)))
    return tuple(found)


def _fewer_nodes(case: Assessment, workers: Sequence[Assessment]) -> Iterable[Suggestion]:
    if case.trainer is None or case.trainer.count <= 1 or case.newcomer_waits():
        return
    offset, sends = _offset(case), bool(case.facts.workers)

    def fits(count: int) -> bool:
        if not sends:
            return case.takes(count) and case.carries(count)
        return case.takes(count) and any(
            w.takes(count) and w.carries(count) and not w.newcomer_waits() for w in workers
        )

    def ever(count: int) -> bool:
        return case.takes(count, idle=True) and (not sends or any(w.takes(count, idle=True) for w in workers))

    if fits(case.trainer.count):
        return
    most = _whole_slices(case, _largest(fits, case.trainer.count - 1))
    if most:
        what = f"With at most {most + offset} node(s) instead of {case.trainer.count + offset} it would start at once."
        yield Suggestion("FewerNodes", what, _resize(case, most + offset), now=True, num_nodes=most + offset)
    elif case.assignment.never and (most := _whole_slices(case, _largest(ever, case.trainer.count - 1))):
        what = f"At most {most + offset} node(s) can ever have quota in this queue."
        yield Suggestion("FewerNodes", what, _resize(case, most + offset), now=False, num_nodes=most + offset)


def _whole_slices(case: Assessment, count: int) -> int:
    return count - count % case.slice_size


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """Return the largest number up to `most` that fits, 0 if none does; what fits, fits with less."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _other_queues(case: Assessment) -> Iterable[Suggestion]:
    facts = case.facts
    metadata = facts.job["metadata"]
    remote = kind_of(facts.job).is_dispatched(facts.job)
    for local in facts.local_queues:
        name = local["metadata"]["name"]
        queue = named(facts.cluster_queues, trees.get(local, "spec", "clusterQueue"))
        if local["metadata"]["namespace"] != metadata["namespace"] or queue is None or local is facts.local_queue:
            continue
        other = Assessment(facts, queue)
        sends = dispatching_check(facts, queue) is not None
        usable = sends == remote and _has_room(other, local) and (not sends or _reaches_room(case, other, name))
        if usable:
            what = f"LocalQueue {name} (ClusterQueue {other.name}) has room for it."
            yield Suggestion("OtherQueue", what, label_queue(facts.job, name), now=True, queue=name)


def _has_room(case: Assessment, local: Tree) -> bool:
    """Return whether the job would be admitted at once by the way of a LocalQueue."""
    return _admits(case.facts, local, case.queue) and not case.newcomer_waits() and case.assignment.fits


def _reaches_room(case: Assessment, other: Assessment, name: str) -> bool:
    """Return whether a worker has room in its LocalQueue of a name, as far as is known.

    Nothing is, and the hub's word has to do, where no workers were asked, or where the other queue sends jobs by
    another check: only workers of the job's own were asked.
    """
    facts, namespace = case.facts, case.facts.job["metadata"]["namespace"]
    if not facts.workers or dispatching_check(facts, other.queue) is not dispatching_check(facts, case.queue):
        return True
    for worker in facts.workers.values():
        if isinstance(worker, str) or (local := worker.find_local_queue(namespace, name)) is None:
            continue
        queue = named(worker.cluster_queues, trees.get(local, "spec", "clusterQueue"))
        if queue is not None and _has_room(Assessment(worker, queue), local):
            return True
    return False


def _other_clusters(case: Assessment, answers: Sequence[ClusterAnswer]) -> Iterable[Suggestion]:
    """Return which workers would take the job, where the hub itself holds it up."""
    nominated = nominated_in(case.facts.workload)
    for answer in answers:
        if not answer.fits or answer.cluster in nominated:
            continue
        if case.is_reserved:
            what = f"{answer.cluster} has room for it, and has not been asked to take it yet."
            do = "Wait for Kueue's dispatcher to ask it; the admin decides how many workers are asked at a time."
        else:
            what = f"{answer.cluster} has room for it; what is missing is quota on the hub."
            do = f"The admin raises the quota of ClusterQueue {case.name} on the hub to what the workers have together."
        yield Suggestion("OtherCluster", what, do, now=False, cluster=answer.cluster)


def _patience(case: Assessment) -> Iterable[Suggestion]:
    if case.is_reserved or case.assignment.fits or case.assignment.never:
        return
    ends = [holder.ends for holder in holders(case) if holder.ends is not None]
    when = f"; the first that says when expects to end by {min(ends):%Y-%m-%dT%H:%M:%SZ}" if ends else ""
    what = f"It starts by itself when others give back enough quota{when}."
    yield Suggestion("Wait", what, "Nothing to do; a higher priority class brings it forward in line.", now=False)


def _admits(facts: Facts, local: Tree, queue: Tree) -> bool:
    """Return whether queues let anything of this namespace in."""
    stopped = any(trees.get(q, "spec", "stopPolicy") not in {None, "", "None"} for q in (local, queue))
    active = (condition(queue, "Active") or {}).get("status") != "False"
    labels = trees.get(facts.namespace, "metadata", "labels") or {}
    allowed = facts.namespace is None or selects(trees.get(queue, "spec", "namespaceSelector"), labels)
    return not stopped and active and allowed


def _offset(case: Assessment) -> int:
    """Return by how much `numNodes` exceeds the pod set `node`: by one where an MPI launcher is a node too."""
    asked = trees.get(case.facts.job, "spec", "trainer", "numNodes")
    launched = any(need.name == names.JOB_LAUNCHER for need in case.needs)
    return 1 if launched and case.trainer is not None and asked == case.trainer.count + 1 else 0


def _resize(case: Assessment, nodes: int) -> str:
    kind, name = kind_of(case.facts.job), case.facts.job["metadata"]["name"]
    if kind.replica_specs:
        return f"Delete {kind.name} {name} and create it again with replicas: {nodes} in spec.{kind.replica_specs}."
    return f"spec.trainer cannot change: delete TrainJob {name} and create it again with numNodes: {nodes}."


def _owner(workload: Tree) -> str:
    owner = next(iter(workload["metadata"].get("ownerReferences") or ()), None)
    return f"{owner['kind']}/{owner['name']}" if owner else f"Workload/{workload['metadata']['name']}"


def _end(facts: Facts, workload: Tree) -> datetime | None:
    owner = trees.get(workload, "metadata", "ownerReferences", ("kind", names.TRAIN_JOB), "name")
    return ends_at(workload, facts.holding_jobs.get((workload["metadata"]["namespace"], owner or "")))
