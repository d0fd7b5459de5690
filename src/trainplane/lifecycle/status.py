"""The status of a TrainJob, from what it asks for and what its JobSet says. Pure.

Conditions are the contract with Kueue and the SDK, so there are three and no more (docs/architecture/operator.md):
Suspended, which says what the spec asks for; Complete and Failed, copied from the JobSet, or Failed by us. With the
end of a TrainJob that sends its output comes a fourth (`output`). A
TrainJob that is finished stays so: its conditions no longer change, whatever the spec or a JobSet says later.

After a resume, Suspended is False until pods run, and then it goes: the official SDK takes a TrainJob that has any
condition for one that does not run, and would show every job that Kueue admitted as Created to its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import names
from trainplane.api.meta import Condition, find, is_true, upsert
from trainplane.api.trainjob import JobStatus  # noqa: TC001 msgspec reads annotations as it runs
from trainplane.lifecycle.conditions import is_finished

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from trainplane.api.trainjob import TrainJob, TrainJobStatus

_COPIED: Final = ((names.JOBSET_COMPLETED, names.COMPLETE), (names.JOBSET_FAILED, names.FAILED))
_SUSPENDED: Final = Condition(
    names.SUSPENDED, "True", names.REASON_SUSPENDED, "spec.suspend holds the TrainJob back: no pods run"
)
_RESUMED: Final = Condition(names.SUSPENDED, "False", names.REASON_RESUMED, "spec.suspend was lifted: pods may run")


class JobSetStatus(msgspec.Struct, frozen=True, rename="camel"):
    """How a JobSet is doing, as far as its TrainJob depends on it."""

    conditions: list[Condition] | None = None
    replicated_jobs_status: list[JobStatus] | None = None
    restarts: int = 0


def observe(job: TrainJob, jobset: JobSetStatus | None, now: datetime) -> TrainJobStatus:
    """Return the status that the TrainJob has now; without a JobSet, what was last seen of one stays."""
    conditions: Sequence[Condition] = job.status.conditions
    jobs: Sequence[JobStatus] = job.status.jobs_status
    if jobset is not None and not _is_held(job, jobset):
        jobs = jobset.replicated_jobs_status or ()
    if not is_finished(conditions):
        conditions = _suspension(job, conditions, now)
        if jobset is not None:
            conditions = _copied(conditions, jobset.conditions or (), now)
        if ready_jobs(jobs) > ready_jobs(job.status.jobs_status) and not is_finished(conditions):
            conditions = _running(job, conditions)
    return msgspec.structs.replace(job.status, conditions=list(conditions), jobs_status=list(jobs))


def fail(status: TrainJobStatus, reason: str, message: str, now: datetime) -> TrainJobStatus:
    """Return the status with the TrainJob failed for a reason of our own."""
    failed = Condition(names.FAILED, "True", reason, message)
    return msgspec.structs.replace(status, conditions=upsert(status.conditions, failed, now))


def with_failure(status: TrainJobStatus, reworded: Callable[[str], str]) -> TrainJobStatus:
    """Return the status with another message of its condition Failed, if that is True."""
    conditions = [
        msgspec.structs.replace(one, message=reworded(one.message))
        if (one.type, one.status) == (names.FAILED, "True")
        else one
        for one in status.conditions
    ]
    return msgspec.structs.replace(status, conditions=conditions)


def ready_jobs(jobs: Iterable[JobStatus]) -> int:
    """Return how many Jobs have all their pods ready, or had."""
    return sum(job.ready + job.succeeded for job in jobs)


def has_pods(jobs: Iterable[JobStatus]) -> bool:
    """Return whether any of some Jobs has pods that run or are about to."""
    return any(job.active or job.ready for job in jobs)


def _is_held(job: TrainJob, jobset: JobSetStatus) -> bool:
    """Return whether a TrainJob waits and its JobSet can add nothing: that its Jobs are suspended is said by then."""
    if not job.spec.suspend or not is_true(job.status.conditions, names.SUSPENDED):
        return False
    return _is_idle(job.status.jobs_status) and _is_idle(jobset.replicated_jobs_status or ())


def _is_idle(jobs: Iterable[JobStatus]) -> bool:
    return not any(job.active or job.ready or job.succeeded or job.failed for job in jobs)


def _suspension(job: TrainJob, conditions: Sequence[Condition], now: datetime) -> Sequence[Condition]:
    if job.spec.suspend:
        return _settled(conditions, _SUSPENDED, now)
    if is_true(conditions, names.SUSPENDED):
        return upsert(conditions, _RESUMED, now)
    return conditions


def _running(job: TrainJob, conditions: Sequence[Condition]) -> Sequence[Condition]:
    """Drop Suspended=False, which has been said by now, unless a deadline counts from it."""
    if job.spec.active_deadline_seconds:
        return conditions
    return [condition for condition in conditions if (condition.type, condition.status) != (names.SUSPENDED, "False")]


def _settled(conditions: Sequence[Condition], wanted: Condition, now: datetime) -> Sequence[Condition]:
    """Leave a condition that already says so as it is, whoever worded it: a takeover writes nothing."""
    present = find(conditions, wanted.type)
    if present is not None and (present.status, present.reason) == (wanted.status, wanted.reason):
        return conditions
    return upsert(conditions, wanted, now)


def _copied(conditions: Sequence[Condition], theirs: Iterable[Condition], now: datetime) -> Sequence[Condition]:
    """Take over the JobSet's end; the first of Completed and Failed counts."""
    for theirs_type, ours in _COPIED:
        condition = find(theirs, theirs_type)
        if condition is not None and condition.status == "True":
            return upsert(conditions, msgspec.structs.replace(condition, type=ours), now)
    return conditions
