"""What people are told about a TrainJob as it goes along, and in which words.

News follows from a change of status, so it is told once, by whoever wrote that change. The official SDK shows core/v1
Events of kind TrainJob, which these are. Reasons are for programs and do not change; sentences may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from trainplane.api import names
from trainplane.api.meta import find
from trainplane.lifecycle.conditions import ENDS
from trainplane.lifecycle.status import ready_jobs
from trainplane.lifecycle.timeline import POD_RESTARTED, RESTARTED, RUNNING, stage_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.meta import Condition
    from trainplane.api.trainjob import TrainJobStatus

EventType: TypeAlias = Literal["Normal", "Warning"]

CREATED: Final = "JobSetCreated"
SUSPENDED: Final = "Suspended"
SCHEDULED: Final = "Scheduled"
COMPLETED: Final = "Completed"
"""The reason of the last Event of a TrainJob that went well."""
_RAN_BEFORE: Final = frozenset({RUNNING, RESTARTED, POD_RESTARTED})
"""Stages after which pods that become ready have been ready before."""


class EventContent(NamedTuple):
    """The type, reason and message of an Event."""

    type: EventType
    reason: str
    message: str


def created(name: str, pods: int, *, suspended: bool) -> EventContent:
    """Tell that the JobSet is there."""
    held = ", held back by spec.suspend" if suspended else ""
    return EventContent("Normal", CREATED, f"created JobSet {name} for {pods} pod{'s' * (pods != 1)}{held}")


def moved(name: str) -> EventContent:
    """Tell that what ran was admitted anew, to run elsewhere."""
    return EventContent(
        "Normal", "Moved", f"spec.runtimePatches changed while JobSet {name} ran: its pods are stopped first"
    )


def restarting(number: int, reason: str) -> EventContent:
    """Report that the operator restarts all pods."""
    return EventContent("Warning", "Restarting", f"restart {number}: {reason}")


def creation_failed(error: Exception) -> EventContent:
    """Tell why a TrainJob's objects could not be made; it is tried again."""
    return EventContent("Warning", names.EVENT_CREATION_FAILED, f"the TrainJob's objects could not be applied: {error}")


def of_change(before: TrainJobStatus, after: TrainJobStatus) -> Iterator[EventContent]:
    """Yield what a change of status means to people."""
    was, now = find(before.conditions, names.SUSPENDED), find(after.conditions, names.SUSPENDED)
    if _turned(was, now, "True"):
        yield EventContent("Normal", SUSPENDED, "suspended: pods are stopped or not started")
    if was is not None and was.status == "True" and (now is None or now.status == "False"):
        yield EventContent("Normal", "Resumed", "resumed: pods may start")
    if has_started(before, after):
        yield _started(before, after)
    for kind in ENDS:
        condition = find(after.conditions, kind)
        if condition is not None and _turned(find(before.conditions, kind), condition, "True"):
            yield ended(condition)


def scheduled(pods: int) -> EventContent:
    """Tell that every pod has a machine."""
    return EventContent("Normal", SCHEDULED, f"all {pods} pods have a machine" if pods > 1 else "its pod has a machine")


def _started(before: TrainJobStatus, after: TrainJobStatus) -> EventContent:
    fault = after.first_fault
    if fault is None or not stage_names(before.timeline) & _RAN_BEFORE:
        return EventContent("Normal", "Started", "pods are ready: training runs")
    place = f"{fault.step} {fault.index}" if fault.step else "a pod"
    return EventContent("Warning", "Restarted", f"pods are ready again, after {fault.cause} in {place}")


def ended(condition: Condition) -> EventContent:
    """Tell that a TrainJob is over, and why."""
    cause = f"{condition.reason}: {condition.message}" if condition.message else condition.reason
    if condition.type == names.COMPLETE:
        return EventContent("Normal", COMPLETED, cause)
    return EventContent("Warning", "Failed", cause)


def has_started(before: TrainJobStatus, after: TrainJobStatus) -> bool:
    """Return whether this change brought the first pods that are ready, since the beginning or the last stop."""
    return ready_jobs(before.jobs_status) == 0 < ready_jobs(after.jobs_status)


def _turned(before: Condition | None, after: Condition | None, status: str) -> bool:
    return after is not None and after.status == status and (before is None or before.status != status)
