"""What the operators tell of a TrainJob as Events: ours tells its whole course, the reference only what went wrong.

Each reason of ours needs what it tells of in the case, and is told no more often than that happened. Ours come late,
and steps that follow each other closely come as one Event with the last one's reason, so fewer are no fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance import context as it
from tests.conformance.cases import Create, Remove, Report
from tests.conformance.compare import ABSENT

if TYPE_CHECKING:
    from tests.conformance.compare import Difference

_TROUBLE = "TrainJobResourcesCreationFailed"


def tells_course(found: Difference) -> bool:
    """Match Events that ours alone has, for progress, a failure, or a restart, each with its cause in the case."""
    if not it.within(found, "News") or found.reference != ABSENT:
        return False
    told = _told(found)
    return bool(told) and all(_is_true(found, *entry) for entry in told)


def _told(found: Difference) -> list[tuple[str, str, object]]:
    """Return type, reason and count of the news that differ."""
    kind, _, reason = found.path.partition(".")
    tree = {kind: {reason: found.ours} if reason else found.ours} if kind else found.ours
    return [(kind, reason, count) for kind, reasons in tree.items() for reason, count in reasons.items()]


def _is_true(found: Difference, kind: str, reason: str, count: object) -> bool:
    if kind == "Warning":
        return reason in ("Failed", "Restarting") and _has_failed(found)
    return isinstance(count, int) and count <= _happened(found, reason)


def _happened(found: Difference, reason: str) -> int:
    """Return how often something happened that is told by a reason."""
    steps = it.so_far(found)
    reports = [step for step in steps if isinstance(step, Report)]
    stops = it.said_of_suspend(found)
    made = sum(isinstance(step, Create) and it.kind(step) == "TrainJob" for step in steps)
    removed = sum(isinstance(step, Remove) and step.kind == "JobSet" for step in steps)
    counts = [step.status.get("replicatedJobsStatus", ()) for step in reports]
    ready = sum(any(one["ready"] or one["succeeded"] for one in jobs) for jobs in counts)
    moved = len(it.patches(found)) - 1
    ended = sum(one["type"] == "Completed" for step in reports for one in step.status.get("conditions", ()))
    happened: dict[str, int] = {
        "JobSetCreated": made + removed,
        "Suspended": stops.count(True),
        "Resumed": stops.count(False) + ended,
        "Started": ready,
        "Completed": ended,
        "Moved": moved,
    }
    return happened.get(reason, 0)


def _has_failed(found: Difference) -> bool:
    """Tell if the JobSet failed, a deadline was set, or the snapshot was taken away."""
    reported = any(
        one["type"] == "Failed"
        for step in it.so_far(found)
        if isinstance(step, Report)
        for one in step.status.get("conditions", ())
    )
    timed = "activeDeadlineSeconds" in it.spec(found.case)
    return reported or timed or it.has_removed(found, "ConfigMap")


def tells_trouble(found: Difference) -> bool:
    """Match that the reference alone tells that it could not make or change a job's objects, where ours can.

    What it could not make, or made at last, is compared as objects; where a name is taken, ours has to tell it as well.
    """
    wanted = {"": {"Warning": {_TROUBLE: "told"}}, "Warning": {_TROUBLE: "told"}, f"Warning.{_TROUBLE}": "told"}
    is_theirs = it.within(found, "News") and found.ours == ABSENT and found.reference == wanted.get(found.path, ABSENT)
    return is_theirs and not _is_taken(found)


def tells_of_strangers(found: Difference) -> bool:
    """Match that ours alone tells that it makes nothing since a name that it needs is taken by another's object."""
    is_told = it.within(found, "News") and found.reference == ABSENT and _is_taken(found)
    return is_told and all(told[:2] == ("Warning", _TROUBLE) or _is_true(found, *told) for told in _told(found))


def _is_taken(found: Difference) -> bool:
    """Tell if another's object has the name of one that the job needs."""
    return bool({document["kind"] for document in found.case.setup} & {"Secret", "JobSet", "ConfigMap"})
