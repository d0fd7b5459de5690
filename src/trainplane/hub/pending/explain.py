"""Why is it queued? One answer for a suspended job, from its Workload, queues, quotas, flavors and nodes.

`explain` is pure: `queued_facts.gather` reads, `answer` does both. What it says about quota, order and what would fit
follows Kueue 0.19; where only Kueue knows (who it would preempt, where free nodes lie), its own message is read.

    facts ─► queued_state   the job, its Workload, its queues, admission checks
         ├─► queued_case    the job before a ClusterQueue: quota, place in line, nodes
         │     └─ queued_flavors ─ queued_quota, queued_nodes
         └─► queued_advice  fewer nodes, another queue, another cluster, who holds the quota
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.api.quantity import ZERO
from trainplane.hub.kinds import TRAIN_JOB, kind_of
from trainplane.hub.pending.advice import holders, suggestions
from trainplane.hub.pending.answer import Answer, Cause, ClusterAnswer
from trainplane.hub.pending.assessment import Assessment
from trainplane.hub.pending.facts import Facts, dispatching_check, gather
from trainplane.hub.pending.state import causes_after_quota, causes_of_job, causes_of_queues, sentence
from trainplane.hub.pending.workload import QUOTA_RESERVED, condition, message_of
from trainplane.hub.workers import WORKER_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.hub.kinds import JobKind
    from trainplane.hub.pending.answer import Code, State
    from trainplane.hub.pending.flavors import Shortfall
    from trainplane.hub.workers import Workers
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock

_ABOUT_QUOTA: Final = frozenset(
    {"QuotaInUse", "ExceedsQuota", "NoMatchingFlavor", "ResourceNotCovered", "Topology", "BehindOthers", "Preempting"}
    | {"AdmissionCheck", "NextInLine"}
)
"""Causes that advice about quota may remove."""
_ABOUT_QUEUE: Final = frozenset(
    {"ClusterQueueStopped", "ClusterQueueInactive", "NamespaceNotSelected", "LocalQueueStopped"}
)
"""Causes that only another queue removes."""

_REFUSALS: Final = ("resources validation failed", "resources didn't satisfy LimitRange")
"""How Kueue begins to say that the pods' own resources are wrong."""


async def answer(
    client: Client,
    namespace: str,
    name: str,
    workers: Workers | None = None,
    *,
    kind: JobKind = TRAIN_JOB,
    clock: Clock | None = None,
    worker_seconds: float = WORKER_SECONDS,
) -> Answer:
    """Return why a job is queued; with `workers`, what each worker of this hub would say too, or that it does not.

    Raises what `gather` does: NoSuchJobError, and KubeError if this cluster cannot be read.
    """
    facts = await gather(client, namespace, name, workers, kind=kind, clock=clock, worker_seconds=worker_seconds)
    return explain(facts)


def explain(facts: Facts) -> Answer:
    """Return why a job is queued and what would let it start."""
    metadata = facts.job["metadata"]
    place = (metadata["namespace"], metadata["name"])
    over = _not_queued(facts)
    if over is not None:
        state, summary = over
        later = _nodes(facts) if state == "Started" else []
        return Answer(*place, state, summary, tuple(later), facts.queue or None, unread=facts.unread)
    case = None if facts.cluster_queue is None else Assessment(facts, facts.cluster_queue)
    clusters = tuple(_ask(cluster, worker) for cluster, worker in facts.workers.items())
    causes = _causes(facts, case)
    state = "Suspended" if any(cause.code == "SuspendedByUser" for cause in causes) else "Queued"
    summary = _summary(causes, case)
    if case is None or facts.workload is None:
        return Answer(*place, state, summary, causes, facts.queue or None, unread=facts.unread)
    before = [
        Assessment(w, w.cluster_queue) for w in facts.workers.values() if isinstance(w, Facts) and w.cluster_queue
    ]
    blocking = {cause.code for cause in causes if cause.blocks}
    helpful = blocking <= _ABOUT_QUOTA | _ABOUT_QUEUE
    admits = not blocking & _ABOUT_QUEUE
    return Answer(
        *place,
        state,
        summary,
        causes,
        facts.queue,
        case.name,
        case.position,
        len(case.line) if case.position else None,
        case.order_is_known,
        suggestions(case, before, clusters, admits=admits) if helpful else (),
        () if case.is_reserved or not helpful else holders(case),
        clusters,
        message_of(facts.workload, QUOTA_RESERVED) if not case.is_reserved else "",
        facts.unread,
    )


def _not_queued(facts: Facts) -> tuple[State, str] | None:
    """Return what a job does that is not queued."""
    job = facts.job
    kind = kind_of(job)
    end = kind.end(job)
    if end is not None:
        why = sentence(str(end.get("message") or ""))
        return "Finished", f"It is not queued: it is {end['type']}. {why}".strip()
    if trees.get(job, "metadata", "deletionTimestamp"):
        return "Deleting", "It is not queued: it is being deleted."
    if kind.is_suspended(job):
        return None
    queue = trees.get(facts.workload, "status", "admission", "clusterQueue")
    by = f"ClusterQueue {queue} admitted it" if queue else "Kueue does not manage it"
    cluster = trees.get(facts.workload, "status", "clusterName")
    return "Started", f"It is not queued: {by}{f', and it is on {cluster}' if cluster else ''}."


def _causes(facts: Facts, case: Assessment | None) -> tuple[Cause, ...]:
    """Return everything that stands in the way, what blocks first."""
    causes = [*causes_of_job(facts), *causes_of_queues(facts)]
    if case is not None and facts.sized is not None:
        blocked = any(cause.blocks for cause in causes)
        if case.is_reserved:
            causes += causes_after_quota(facts)
        elif not blocked or not case.assignment.fits:
            causes += _quota(case)
        causes += _nodes(facts)
    return tuple(sorted(causes, key=lambda cause: not cause.blocks))


def _quota(case: Assessment) -> list[Cause]:
    """Return what quota says, and the line, for a job that has none."""
    workload, assignment = case.facts.workload, case.assignment
    said = message_of(workload, QUOTA_RESERVED)
    reason = (condition(workload, QUOTA_RESERVED) or {}).get("reason")
    field = f"Workload {trees.get(workload, 'metadata', 'name')}: QuotaReserved"
    told = [each for each in assignment.shortfalls if not each.flavor or each.flavor in case.flavors]
    causes = [_short(case, each) for each in told]
    if "Pending the preemption" in said:
        what = "Kueue is ending work of lower priority to make room for it."
        causes.insert(0, Cause("Preempting", field, what, "Wait until the others have stopped."))
    if case.topology_room is not None:
        what = f"Free nodes do not lie together as its pods must: {sentence(said)}"
        do = "Wait, ask for fewer nodes, or ask for a wider topology in the runtime's pod annotations."
        causes.append(Cause("Topology", field, what, do))
    if case.is_strict and (case.position or 1) > 1:
        what = f"ClusterQueue {case.name} admits strictly in order, and {(case.position or 1) - 1} wait before it."
        causes.append(Cause("BehindOthers", f"ClusterQueue {case.name}: spec.queueingStrategy", what, _PATIENCE))
    if causes or not assignment.fits or workload is None:
        return causes
    if said.startswith(_REFUSALS):
        kind = kind_of(case.facts.job)
        where = f"spec.{kind.replica_specs}" if kind.replica_specs else f"the {kind.name} or its runtime"
        do = f"Correct the resources in {where} and create the {kind.name} again."
        return [Cause("Refused", field, f"Kueue refuses its pods: {sentence(said)}", do)]
    if reason in {"Waiting", "WaitingForPodsReady"}:
        what = "Kueue admits nothing until the pods of what it admitted last are ready."
        return [Cause("WaitingForPodsReady", field, what, "Wait; see whether those pods can start.")]
    what = "There is quota for it; Kueue should admit it within seconds."
    return [Cause("NextInLine", field, what, "If it stays so, read Kueue's own words below and its log.")]


_PATIENCE: Final = "Wait; a higher priority class brings it forward in line."


def _short(case: Assessment, short: Shortfall) -> Cause:
    """Tell one shortfall."""
    queue = f"ClusterQueue {case.name}"
    where = f"{queue}: flavor {short.flavor}"
    if short.spared:
        return _spared(short, where)
    if short.lack == "Uncovered":
        what = f"It asks for {short.need} {short.resource}, and {queue} has no quota of {short.resource} at all."
        do = f"Ask for none, use another queue, or the admin adds {short.resource} to the ClusterQueue."
        return Cause("ResourceNotCovered", f"{queue}: spec.resourceGroups", what, do, quota=short)
    if short.lack == "Mismatch":
        what = f"It cannot use flavor {short.flavor}: {short.detail}."
        do = "Let the pods tolerate the taint or select those nodes (runtimePatches), or use another queue."
        return Cause("NoMatchingFlavor", where, what, do, quota=short)
    limit = "" if short.borrowing_limit is None else f" of at most {short.borrowing_limit}"
    cohort = trees.get(case.queue, "spec", "cohortName")
    borrows = f", borrowing{limit} from cohort {cohort} included" if cohort else ""
    if short.lack == "Limit":
        what = f"It needs {short.need} {short.resource}, and no more than {short.potential} can ever be had{borrows}."
        do = "Ask for less, use another queue, or the admin raises the quota: as things are it never starts."
        return Cause("ExceedsQuota", f"{where}, {short.resource}", what, do, quota=short)
    free = max(ZERO, short.available)
    what = (
        f"It needs {short.need} {short.resource}, and {free} are free{borrows}: "
        f"{short.used} of the queue's {short.nominal} are used."
    )
    return Cause("QuotaInUse", f"{where}, {short.resource}", what, _PATIENCE, quota=short)


def _spared(short: Shortfall, where: str) -> Cause:
    """Tell of a flavor that cannot serve the job, while another can."""
    do = "Nothing: another flavor of the queue can serve it."
    if short.lack == "Mismatch":
        what = f"It cannot use flavor {short.flavor}: {short.detail}."
        return Cause("NoMatchingFlavor", where, what, do, blocks=False, quota=short)
    most = f"no more than {short.potential} of its {short.resource} can ever be had, and it needs {short.need}"
    if short.lack == "Quota":
        most = f"{max(ZERO, short.available)} of its {short.resource} are free, and it needs {short.need}"
    code: Code = "ExceedsQuota" if short.lack == "Limit" else "QuotaInUse"
    what = f"Flavor {short.flavor} does not serve it: {most}."
    return Cause(code, f"{where}, {short.resource}", what, do, blocks=False, quota=short)


def _nodes(facts: Facts) -> list[Cause]:
    """Warn of pods that no node could carry, on the cluster where they would run."""
    queue = facts.cluster_queue
    if queue is None or facts.nodes is None or dispatching_check(facts, queue) is not None:
        return []
    case, causes = Assessment(facts, queue), []
    for need in case.needs:
        found = case.node_fit(need)
        if found is None or need.count <= found.pods:
            continue
        field = f"pods {need.name}"
        if found.pods == 0:
            why = "; ".join(found.refusals) or "the cluster has no nodes"
            what = f"No node could carry one of its {need.name} pods ({why})."
            do = "Ask for what nodes have, tolerate their taints, or the admin adds nodes; an autoscaler may."
            causes.append(Cause("NoNodeFits", field, what, do, blocks=False))
        else:
            what = f"Its {need.count} {need.name} pods need more than all nodes: even empty they carry {found.pods}."
            do = "Ask for fewer nodes, or the admin adds some; an autoscaler may."
            causes.append(Cause("TooFewNodes", field, what, do, blocks=False))
    return causes


def _ask(cluster: str, worker: Facts | str) -> ClusterAnswer:
    """Return what a worker would say."""
    if isinstance(worker, str):
        do = "The admin checks the MultiKueueCluster and its Secret: trainplane fleet check."
        cause = Cause("WorkerUnreachable", f"MultiKueueCluster {cluster}", sentence(worker), do)
        return ClusterAnswer(cluster, None, Answer("", "", "Queued", sentence(worker), (cause,)))
    case = None if worker.cluster_queue is None else Assessment(worker, worker.cluster_queue)
    causes = _causes(worker, case)
    fits = (
        None
        if not worker.knows_queues
        else case is not None and not any(c.blocks and c.code not in {"NextInLine", "AdmissionCheck"} for c in causes)
    )
    metadata = worker.job["metadata"]
    summary = _summary(causes, case) if not fits else "It has room for it now."
    found = Answer(
        metadata["namespace"],
        metadata["name"],
        "Queued",
        summary,
        causes,
        worker.queue,
        case.name if case else None,
        case.position if case else None,
        len(case.line) if case and case.position else None,
        kueue=message_of(worker.workload, QUOTA_RESERVED),
        unread=worker.unread,
    )
    return ClusterAnswer(cluster, fits, found)


def _summary(causes: Iterable[Cause], case: Assessment | None) -> str:
    blocking = [cause for cause in causes if cause.blocks]
    if not blocking:
        return "Nothing that we can see stands in its way."
    first = blocking[0]
    more = len({(c.code, c.field) for c in blocking}) - 1
    rest = f" ({more} more below)" if more else ""
    waiting = first.code in {"QuotaInUse", "BehindOthers", "NextInLine", "Preempting"}
    at = f" It is number {case.position} of {len(case.line)} in line." if waiting and case and case.position else ""
    return f"{first.what}{at}{rest}"
