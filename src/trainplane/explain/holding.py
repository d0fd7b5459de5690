"""Why a TrainJob is held: by its user, by its queue, or because Kueue took its place away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.explain.phrasing import of_class
from trainplane.explain.standing import holding, is_dispatched

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.explain.explanation import Explanation
    from trainplane.explain.facts import Facts

_BY_CODE: Final = {
    "SuspendedByUser": "Suspended",
    "NoQueue": "QueueMissing",
    "LocalQueueMissing": "QueueMissing",
    "LocalQueueStopped": "QueueMissing",
    "ClusterQueueMissing": "QueueMissing",
    "ClusterQueueStopped": "QueueMissing",
    "ClusterQueueInactive": "QueueMissing",
    "NamespaceMissing": "QueueMissing",
    "NamespaceNotSelected": "QueueMissing",
    "RuntimeMissing": "RuntimeMissing",
    "WorkerUnreachable": "WorkerLost",
    "NoNodeFits": "Unschedulable",
}
"""By the codes of the hub's answer; the others mean that it waits for quota."""
_OUT_OF_SYNC: Final = "is out of sync with its user job"
"""In Kueue's words."""


def is_held(job: Tree, view: Tree | None = None) -> bool:
    """Return whether a TrainJob is held back, by its user or by Kueue."""
    if is_dispatched(job):
        placement = trees.get(view, "status", "placement")
        if placement is not None:
            return bool(placement == "Waiting")
        return not trees.get(job, "status", "jobsStatus") or holding(job, names.SUSPENDED) is not None
    return bool(trees.get(job, "spec", "suspend")) or holding(job, names.SUSPENDED) is not None


def explain_hold(facts: Facts) -> Explanation:
    """Return why a TrainJob is held."""
    differs = _out_of_sync(facts)
    if differs is not None:
        return differs
    answer = next((one for one in trees.entries(facts.queue, "causes") if one.get("blocks", True)), None)
    if answer is not None:
        cause = _BY_CODE.get(str(answer.get("code")), "Queued")
        detail = trees.text(answer, "what") or ""
        return of_class("Held", cause, facts.name, detail=detail, source="queue", reason=str(answer.get("code")))
    queue = trees.text(facts.job, "metadata", "labels", names.LABEL_QUEUE)
    if queue is None and not facts.view and facts.workload is None:
        return of_class("Held", "Suspended", facts.name)
    told = _workload(facts)
    if told is not None:
        return told
    detail = trees.text(facts.view, "status", "reason") or f"it waits for quota in queue {queue}"
    return of_class("Held", "Queued", facts.name, detail=detail, source="queue")


def _out_of_sync(facts: Facts) -> Explanation | None:
    """Return that a worker made other pods of a TrainJob than the hub and sent it back, by Kueue's last Warning."""
    warnings = [
        str(event.get("message"))
        for event in facts.events
        if event.get("type") == "Warning" and trees.text(event, "involvedObject", "kind") == "Workload"
    ]
    checks = trees.entries(facts.workload, "status", "admissionChecks")
    told = [str(check.get("message")) for check in checks if check.get("state") == "Retry"] or warnings[-1:]
    message = next((one for one in told if _OUT_OF_SYNC in one), None)
    if message is None:
        return None
    return of_class("Held", "RuntimeDiffers", facts.name, detail=message, source="Workload", certainty="likely")


def _workload(facts: Facts) -> Explanation | None:
    """Return what Kueue's Workload says of itself."""
    conditions = {str(one.get("type")): one for one in trees.entries(facts.workload, "status", "conditions")}
    evicted, reserved = conditions.get("Evicted", {}), conditions.get("QuotaReserved", {})
    if evicted.get("status") == "True":
        detail = trees.text(evicted, "message") or ""
        reason = trees.text(evicted, "reason") or ""
        if reason == "Preempted":
            return of_class("Held", "PreemptedByKueue", facts.name, detail=detail, source="Workload", reason=reason)
    message = trees.text(reserved, "message")
    if reserved.get("status") == "False" and message:
        missing = trees.text(reserved, "reason") == "Inadmissible"
        cause = "QueueMissing" if missing else "Queued"
        return of_class("Held", cause, facts.name, detail=message, source="Workload", reason=cause)
    return None
