"""What keeps a job queued before quota is even looked at, and after it was reserved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.hub.kinds import key_of, kind_of
from trainplane.hub.pending.answer import Cause
from trainplane.hub.pending.facts import checks_of, dispatching_check, named
from trainplane.hub.pending.nodes import selects
from trainplane.hub.pending.workload import (
    ADMITTED,
    EVICTED,
    QUOTA_RESERVED,
    REQUEUED,
    condition,
    gates_of,
    holds,
    message_of,
    moment,
)
from trainplane.hub.placement import nominated_in
from trainplane.lifecycle import after

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.hub.kinds import JobKind
    from trainplane.hub.pending.facts import Facts

_RUNNING: Final = (None, "", "None")
"""Values of `stopPolicy` with which a queue admits."""
_POLICY_MEANS: Final = {"Hold": "admits nothing new", "HoldAndDrain": "admits nothing and ends what it had admitted"}


def causes_of_job(facts: Facts) -> list[Cause]:
    """Return what the job and its Workload themselves say."""
    job, workload = facts.job, facts.workload
    if facts.cluster is not None:
        return _copy(facts, workload) if workload else []
    if workload is None:
        return _no_workload(facts)
    causes = [*_no_runtime(facts), *_managed_by(facts)]
    if not facts.queue:
        what = "It names no queue, so Kueue keeps it suspended."
        causes.append(Cause("NoQueue", _QUEUE_FIELD, what, _set_queue(facts)))
    if trees.get(workload, "spec", "active") is False:
        causes.append(_deactivated(facts, workload))
    gates = gates_of(job) or gates_of(workload)
    if gates:
        what, do = _gated(job, gates)
        causes.append(Cause("Gated", "metadata.annotations[kueue.x-k8s.io/admission-gated-by]", what, do))
    return causes + _held_back(facts)


def _copy(facts: Facts, workload: Tree) -> list[Cause]:
    """Return what a worker's copy of the Workload says; it is the hub's to take away, not people's to switch on."""
    if trees.get(workload, "spec", "active") is not False:
        return _held_back(facts)
    what = f"Its Workload there is deactivated: {sentence(message_of(workload, EVICTED) or 'it is being taken back')}"
    return [Cause("Deactivated", f"Workload {_name(workload)}: spec.active", what, "Wait until MultiKueue removes it.")]


def _gated(job: Tree, gates: tuple[str, ...]) -> tuple[str, str]:
    """Return who must agree before Kueue looks at a TrainJob, and what to do."""
    others = [gate for gate in gates if gate != names.ANNOTATION_AFTER]
    earlier = after.awaited(trees.get(job, "metadata", "annotations") or {})
    if others or not earlier:
        what = f"{', '.join(gates)} must agree before Kueue looks at it."
        return what, "Whoever set the gate removes its name from the annotation; ask them, or the admin."
    what = f"TrainJob {earlier} must be complete before Kueue looks at it, and is not."
    return what, f"Look at TrainJob {earlier}; create it if there is none."


def causes_of_queues(facts: Facts) -> list[Cause]:
    """Return what is wrong with the way to quota: LocalQueue, ClusterQueue, namespace."""
    namespace = facts.job["metadata"]["namespace"]
    if not facts.queue or not facts.knows_queues:
        return []
    if facts.cluster is not None and facts.namespace is None and "namespaces" not in facts.unread:
        what = f"Namespace {namespace} does not exist there."
        do = "The admin creates the namespace, a LocalQueue of the same name and the runtime on that worker."
        return [Cause("NamespaceMissing", f"Namespace {namespace}", what, do)]
    local, field = facts.local_queue, f"LocalQueue {namespace}/{facts.queue}"
    if local is None:
        return [_no_local_queue(facts, field)]
    causes = []
    if (policy := trees.get(local, "spec", "stopPolicy")) not in _RUNNING:
        what = f"LocalQueue {facts.queue} is stopped: it {_POLICY_MEANS.get(policy, 'does not admit')}."
        do = (
            f"The admin sets spec.stopPolicy of the LocalQueue to None: {_resume('localqueue', facts.queue, namespace)}"
        )
        causes.append(Cause("LocalQueueStopped", f"{field}: spec.stopPolicy", what, do))
    name = trees.get(local, "spec", "clusterQueue")
    queue = facts.cluster_queue
    if queue is None:
        what = f"LocalQueue {facts.queue} leads to ClusterQueue {name}, which does not exist."
        do = "The admin creates that ClusterQueue, or makes the LocalQueue again with another."
        return [*causes, Cause("ClusterQueueMissing", f"{field}: spec.clusterQueue", what, do)]
    return causes + _cluster_queue(facts, queue) + _namespace(facts, queue)


def causes_after_quota(facts: Facts) -> list[Cause]:
    """Return what a job still waits for that has its quota."""
    workload = facts.workload or {}
    if holds(workload, EVICTED):
        return [_stopping(facts, workload)]
    causes = []
    for check in trees.get(workload, "status", "admissionChecks") or ():
        state = check.get("state") or "Pending"
        if state != "Ready":
            causes.append(_check(facts, check, state))
    if not causes and holds(workload, ADMITTED) and facts.cluster is None:
        what = "Kueue has admitted it and has not unsuspended it yet."
        do = "If that lasts more than seconds, read Kueue's log: the API server refuses Kueue's change of the job."
        causes.append(Cause("NotStarted", kind_of(facts.job).field("suspend"), what, do))
    return causes


def _stopping(facts: Facts, workload: Tree) -> Cause:
    """Tell that a job is being stopped: Kueue evicts first, and takes the quota back when no Job is active any more."""
    said = sentence(message_of(workload, EVICTED) or str((condition(workload, EVICTED) or {}).get("reason") or ""))
    what = f"Kueue evicted it, and it has not stopped yet: {said}"
    do = "Wait: it gives its quota back, and is queued again if it may be, when none of its pods is active any more."
    if facts.workers:
        do += " If the worker that runs it cannot be reached, this may take until it is back."
    return Cause("Stopping", f"Workload {_name(workload)}: Evicted", what, do)


def _no_workload(facts: Facts) -> list[Cause]:
    kind, (namespace, name, _) = kind_of(facts.job), key_of(facts.job)
    if not facts.queue:
        what = "A person suspended it, not Kueue: it names no queue."
        return [Cause("SuspendedByUser", kind.field("suspend"), what, _resume_job(kind, namespace, name))]
    if facts.runtime_exists is False:
        return _no_runtime(facts)
    warnings = [e for e in facts.events if e.get("type") == "Warning" and e.get("message")]
    said = f" Last warning: {warnings[-1]['message']}" if warnings else ""
    what = f"Kueue has made no Workload for it.{said}"
    do = (
        f"Wait a few seconds. If none comes, the admin checks that Kueue runs, that {kind.framework} is in "
        "its integrations.frameworks, and that its managedJobsNamespaceSelector has this namespace."
    )
    return [Cause("NoWorkload", _QUEUE_FIELD, what, do)]


def _no_runtime(facts: Facts) -> list[Cause]:
    if facts.runtime_exists is not False:
        return []
    reference = trees.get(facts.job, "spec", "runtimeRef") or {}
    kind = reference.get("kind") or names.CLUSTER_TRAINING_RUNTIME
    what = f"{kind} {reference.get('name')!r} does not exist, so Kueue cannot tell what the job needs."
    do = f"Create the {kind}, or create the TrainJob again with a runtime that exists."
    return [Cause("RuntimeMissing", "spec.runtimeRef.name", what, do)]


def _managed_by(facts: Facts) -> list[Cause]:
    """Return a mismatch between who is to run the job and whether its queue sends jobs to workers."""
    queue = facts.cluster_queue
    if queue is None or facts.checks is None:
        return []
    sends = dispatching_check(facts, queue) is not None
    kind = kind_of(facts.job)
    remote = kind.is_dispatched(facts.job)
    if sends and remote and not kind.is_mirrored:
        what = f"Kueue on a worker refuses the copy of a {kind.name} that MultiKueue makes: no worker ever takes it."
        do = f"Queue it on the cluster where it is to run; as TrainJob it can be sent. {_set_queue(facts)}"
        return [Cause("NotMirrored", "kind", what, do)]
    if sends == remote:
        return []
    name = queue["metadata"]["name"]
    if sends:
        what = f"ClusterQueue {name} sends jobs to workers, and this one was made to run on this cluster."
    else:
        what = f"It was made to run on a worker, and ClusterQueue {name} sends no jobs to workers: nobody will run it."
    field = kind.field("managedBy")
    do = f"The field cannot change: delete the {kind.name} and create it again without {field}; Kueue sets it."
    return [Cause("ManagedBy", field, what, do)]


def _deactivated(facts: Facts, workload: Tree) -> Cause:
    namespace, name = facts.job["metadata"]["namespace"], workload["metadata"]["name"]
    why = message_of(workload, EVICTED) if holds(workload, EVICTED) else ""
    rejected = [c for c in trees.get(workload, "status", "admissionChecks") or () if c.get("state") == "Rejected"]
    if rejected:
        why = "; ".join(
            f"{check['name']} rejected it: {check.get('message') or 'no reason given'}" for check in rejected
        )
    what = f"Its Workload is deactivated: {sentence(why or 'somebody set spec.active to false')}"
    do = (
        "When the reason is gone, reactivate it: "
        f"""kubectl patch workload {name} -n {namespace} --type=merge -p '{{"spec":{{"active":true}}}}'"""
    )
    return Cause("Deactivated", f"Workload {name}: spec.active", what, do)


def _held_back(facts: Facts) -> list[Cause]:
    """Return a wait that an earlier eviction imposed, and what the eviction tells."""
    workload = facts.workload
    if trees.get(workload, "spec", "active") is False or holds(workload, QUOTA_RESERVED):
        return []
    causes = []
    evicted = condition(workload, EVICTED) or {}
    why = evicted.get("reason") if evicted.get("status") == "True" else None
    said = f" {sentence(message_of(workload, EVICTED))}" if why else ""
    field = f"Workload {_name(workload)}: status.requeueState"
    if when := _next_try(facts):
        do = "Wait; or find out why it was evicted, for it may be again."
        causes.append(Cause("Backoff", field, f"Kueue looks at it again {when}.{said}", do))
    elif (condition(workload, REQUEUED) or {}).get("status") == "False" and why:
        do = "It is queued again when its pods are gone and what evicted it has passed."
        causes.append(Cause("Backoff", field, f"Kueue evicted it and has not queued it again.{said}", do))
    if why == "PodsReadyTimeout":
        times = trees.get(workload, "status", "requeueState", "count") or 1
        what = f"It was started and evicted {times} time(s) because its pods were not all ready in time."
        do = (
            "Look for pods that cannot be scheduled, pull their image or get ready; initializers count against the "
            "time too. The admin can give more with waitForPodsReady.timeout."
        )
        causes.append(Cause("PodsReadyTimeout", f"Workload {_name(workload)}: Evicted", what, do, blocks=False))
    return causes


def _next_try(facts: Facts) -> str:
    """Return when Kueue looks at a Workload again that it holds back; nothing if it does not."""
    at = moment(trees.get(facts.workload, "status", "requeueState", "requeueAt"))
    if at is None or at <= facts.now:
        return ""
    return f"at {at:%Y-%m-%dT%H:%M:%SZ}, in {round((at - facts.now).total_seconds())} s"


def _no_local_queue(facts: Facts, field: str) -> Cause:
    namespace = facts.job["metadata"]["namespace"]
    here = sorted(q["metadata"]["name"] for q in facts.local_queues if q["metadata"]["namespace"] == namespace)
    if facts.cluster is not None:
        what = f"LocalQueue {facts.queue} does not exist in namespace {namespace} there."
        return Cause("LocalQueueMissing", field, what, "The admin creates it on that worker, under the same name.")
    what = f"LocalQueue {facts.queue} does not exist in namespace {namespace}."
    found = f"there are: {', '.join(here)}" if here else "there is none; the admin makes one"
    return Cause("LocalQueueMissing", _QUEUE_FIELD, what, f"Name a queue that exists ({found}). {_set_queue(facts)}")


def _cluster_queue(facts: Facts, queue: Tree) -> list[Cause]:
    """Return why a ClusterQueue admits nothing."""
    name = queue["metadata"]["name"]
    field = f"ClusterQueue {name}"
    causes = []
    if (policy := trees.get(queue, "spec", "stopPolicy")) not in _RUNNING:
        what = f"ClusterQueue {name} is stopped: it {_POLICY_MEANS.get(policy, 'does not admit')}."
        do = f"The admin sets spec.stopPolicy of the ClusterQueue to None: {_resume('clusterqueue', name)}"
        causes.append(Cause("ClusterQueueStopped", f"{field}: spec.stopPolicy", what, do))
    for missing in _missing_flavors(facts, queue):
        what = f"ClusterQueue {name} admits nothing: its ResourceFlavor {missing} does not exist."
        do = f"The admin creates ResourceFlavor {missing}, or takes it out of the ClusterQueue."
        causes.append(Cause("ClusterQueueInactive", f"{field}: spec.resourceGroups[].flavors[]", what, do))
    causes += _checks(facts, queue)
    active = condition(queue, "Active") or {}
    if not causes and active.get("status") == "False":
        what = f"ClusterQueue {name} admits nothing: {sentence(active.get('message') or active.get('reason') or '')}"
        causes.append(Cause("ClusterQueueInactive", f"{field}: status", what, "The admin corrects the ClusterQueue."))
    return causes


def _checks(facts: Facts, queue: Tree) -> list[Cause]:
    name, causes = queue["metadata"]["name"], []
    for check in checks_of(queue) if facts.checks is not None else ():
        found = named(facts.checks or (), check)
        active = condition(found, "Active") or {}
        if found is None:
            what = f"ClusterQueue {name} admits nothing: its AdmissionCheck {check} does not exist."
            do = f"The admin creates AdmissionCheck {check}, or takes it out of the ClusterQueue."
        elif active.get("status") != "True":
            said = active.get("message") or "nobody works on it"
            what = f"ClusterQueue {name} admits nothing: its AdmissionCheck {check} is not active: {sentence(said)}"
            do = f"The admin corrects what AdmissionCheck {check} says, or starts its controller."
        else:
            continue
        causes.append(Cause("ClusterQueueInactive", f"AdmissionCheck {check}", what, do))
    return causes


def _namespace(facts: Facts, queue: Tree) -> list[Cause]:
    if facts.namespace is None:
        return []
    selector = trees.get(queue, "spec", "namespaceSelector")
    namespace, name = facts.namespace["metadata"]["name"], queue["metadata"]["name"]
    if selects(selector, facts.namespace["metadata"].get("labels") or {}):
        return []
    what = f"ClusterQueue {name} does not take jobs of namespace {namespace}: its namespaceSelector excludes it."
    do = "The admin labels the namespace as the selector wants, or changes the selector; or use another queue."
    return [Cause("NamespaceNotSelected", f"ClusterQueue {name}: spec.namespaceSelector", what, do)]


def _check(facts: Facts, check: Tree, state: str) -> Cause:
    """Tell an admission check that has not agreed. Kueue keeps the quota until a check's own delay has passed."""
    name, said = check["name"], sentence(check.get("message") or "")
    nominated = nominated_in(facts.workload)
    when = _next_try(facts)
    means = {
        "Pending": f"Quota is reserved; admission check {name} has not agreed yet.",
        "Retry": f"Admission check {name} has not agreed and wants to try again{f' {when}' if when else ''}.",
        "Rejected": f"Admission check {name} rejected it.",
    }
    what = means.get(state, f"Admission check {name} is {state}.")
    if nominated and state == "Pending":
        what = f"Quota is reserved here; {', '.join(nominated)} asked to take it, none has yet."
    do = "See the workers' answers." if facts.workers else f"Wait, or ask whoever runs admission check {name}."
    return Cause("AdmissionCheck", f"Workload {_name(facts.workload)}: {name}", f"{what} {said}".strip(), do)


def _missing_flavors(facts: Facts, queue: Tree) -> list[str]:
    if facts.flavors is None:
        return []
    groups = trees.get(queue, "spec", "resourceGroups") or ()
    wanted = {flavor["name"] for group in groups for flavor in group.get("flavors") or ()}
    return sorted(wanted - {flavor["metadata"]["name"] for flavor in facts.flavors})


_QUEUE_FIELD: Final = f"metadata.labels[{names.LABEL_QUEUE}]"


def _set_queue(facts: Facts) -> str:
    return label_queue(facts.job, "QUEUE")


def label_queue(job: Tree, queue: str) -> str:
    """Return the command that puts a job into another queue."""
    namespace, name, kind = key_of(job)
    return f"kubectl label {kind.lower()} {name} -n {namespace} --overwrite {names.LABEL_QUEUE}={queue}"


def _resume_job(kind: JobKind, namespace: str, name: str) -> str:
    patch: Tree = {"suspend": False}
    for part in reversed(kind.policy):
        patch = {part: patch}
    text = json.dumps(patch, separators=(",", ":"))
    return f"kubectl patch {kind.name.lower()} {name} -n {namespace} --type=merge -p '{text}'"


def _resume(kind: str, name: str, namespace: str = "") -> str:
    where = f" -n {namespace}" if namespace else ""
    return f"""kubectl patch {kind} {name}{where} --type=merge -p '{{"spec":{{"stopPolicy":"None"}}}}'"""


def _name(workload: Tree | None) -> str:
    return str(trees.get(workload, "metadata", "name"))


def sentence(text: str) -> str:
    """Return what somebody else wrote, ended by a full stop."""
    text = text.strip()
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."
