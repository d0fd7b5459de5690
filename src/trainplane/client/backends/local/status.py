"""The status of a local TrainJob, by the operator's rules. Pure.

Suspended says what the spec asks for; Complete and Failed come from `jobset_policy`, from the deadline, or from a
supervisor that ended. A job that is over stays so. `trainplane.operator.status` has the same rules for a
cluster, and a test holds these sentences against those.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.client.backends.local import events
from trainplane.client.backends.local.moments import stamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainplane.api.tree import Tree

SUPERVISOR_ENDED: Final = "SupervisorEnded"
"""The reason of a job whose supervisor is gone before the job was over."""


def condition(status: Tree, kind: str) -> Tree | None:
    """Return the condition of a type, or None."""
    found: Tree | None = trees.get(status, "conditions", ("type", kind))
    return found


def is_finished(status: Tree) -> bool:
    """Return whether the job is over, for better or worse."""
    return any((condition(status, kind) or {}).get("status") == "True" for kind in (names.COMPLETE, names.FAILED))


def observe(job: Tree, status: Tree, jobs: Sequence[Tree], now: datetime, end: Tree | None = None) -> Tree:
    """Return the status that a job has now, with these entries of jobsStatus, and perhaps over by `end`."""
    after = {"conditions": list(status.get("conditions") or ()), "jobsStatus": list(jobs)}
    if is_finished(status):
        return after
    if trees.get(job, "spec", "suspend"):
        _set(after, now, names.SUSPENDED, "True", reason=names.REASON_SUSPENDED, message=_HELD)
    elif (condition(status, names.SUSPENDED) or {}).get("status") == "True":
        _set(after, now, names.SUSPENDED, "False", reason=names.REASON_RESUMED, message=_LIFTED)
    if end is not None:
        _set(after, now, end["type"], "True", reason=end["reason"], message=end["message"])
    elif _ready(jobs) > _ready(status.get("jobsStatus") or ()) and not _deadline(job):
        after["conditions"] = [
            one for one in after["conditions"] if (one["type"], one["status"]) != (names.SUSPENDED, "False")
        ]
    return after


_HELD: Final = "spec.suspend holds the TrainJob back: no pods run"
_LIFTED: Final = "spec.suspend was lifted: pods may run"


def changes(before: Tree, after: Tree) -> Iterator[events.EventContent]:
    """Yield what a change of status means to people."""
    was, now = condition(before, names.SUSPENDED), condition(after, names.SUSPENDED)
    if now and now["status"] == "True" and (was or {}).get("status") != "True":
        yield events.SUSPENDED
    if (was or {}).get("status") == "True" and (now or {}).get("status") != "True":
        yield events.RESUMED
    if _ready(before.get("jobsStatus") or ()) == 0 < _ready(after.get("jobsStatus") or ()):
        yield events.STARTED
    for kind in (names.COMPLETE, names.FAILED):
        over = condition(after, kind)
        if over and over["status"] == "True" and (condition(before, kind) or {}).get("status") != "True":
            yield events.over(over)


def expires(job: Tree, status: Tree) -> datetime | None:
    """Return when the job's time is over: counted from its creation, or from the last resume."""
    allowed = _deadline(job)
    if not allowed or trees.get(job, "spec", "suspend") or is_finished(status):
        return None
    began = job["metadata"]["creationTimestamp"]
    resumed = condition(status, names.SUSPENDED)
    if resumed and resumed["status"] == "False":
        began = resumed["lastTransitionTime"]
    return datetime.fromisoformat(began) + timedelta(seconds=allowed)


def too_late(job: Tree) -> Tree:
    """Return the condition of a job that took too long."""
    message = f"the TrainJob ran longer than spec.activeDeadlineSeconds, {_deadline(job)} s: its pods were stopped"
    return failed(names.REASON_DEADLINE_EXCEEDED, message)


def failed(reason: str, message: str) -> Tree:
    """Return the condition of a job that failed."""
    return {"type": names.FAILED, "status": "True", "reason": reason, "message": message}


def _deadline(job: Tree) -> int:
    return int(trees.get(job, "spec", "activeDeadlineSeconds") or 0)


def _ready(jobs: Sequence[Tree]) -> int:
    return sum(entry.get("ready", 0) + entry.get("succeeded", 0) for entry in jobs)


def _set(status: Tree, now: datetime, kind: str, value: str, *, reason: str, message: str) -> None:
    present = condition(status, kind)
    if present and present["status"] == value:
        return
    entry = {"type": kind, "status": value, "reason": reason, "message": message, "lastTransitionTime": stamp(now)}
    status["conditions"] = [*(one for one in status["conditions"] if one["type"] != kind), entry]
