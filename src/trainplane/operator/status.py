"""The status of a TrainJob, from what it asks for and what its JobSet says. Pure.

Conditions are the contract with Kueue and the SDK, so there are three and no more (docs/architecture/operator.md):
Suspended, which says what the spec asks for; Complete and Failed, copied from the JobSet, or Failed by a deadline. A
TrainJob that is finished stays so: its conditions no longer change, whatever the spec or a JobSet says later.

After a resume, Suspended is False until pods run, and then it goes: the official SDK takes a TrainJob that has any
condition for one that does not run, and would show every job that Kueue admitted as Created to its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import names
from trainplane.api.document import to_tree
from trainplane.api.meta import Condition, find, is_true, upsert
from trainplane.api.trainjob import TrainJobStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from trainplane.api.trainjob import JobStatus, TrainJob
    from trainplane.api.tree import Tree
    from trainplane.operator.stores import SeenJobSet

_COPIED: Final = ((names.JOBSET_COMPLETED, names.COMPLETE), (names.JOBSET_FAILED, names.FAILED))
_STOPS: Final = frozenset(
    {names.REASON_DEADLINE_EXCEEDED, names.REASON_SNAPSHOT_CHANGED, names.REASON_SNAPSHOT_MISSING}
)
_SUSPENDED: Final = Condition(
    names.SUSPENDED, "True", names.REASON_SUSPENDED, "spec.suspend holds the TrainJob back: no pods run"
)
_RESUMED: Final = Condition(names.SUSPENDED, "False", names.REASON_RESUMED, "spec.suspend was lifted: pods may run")


def observe(job: TrainJob, jobset: SeenJobSet | None, now: datetime) -> TrainJobStatus:
    """Return the status that the TrainJob has now; without a JobSet, what was last seen of one stays."""
    conditions: Sequence[Condition] = job.status.conditions
    jobs = (job.status.jobs_status if jobset is None else jobset.status.replicated_jobs_status) or ()
    if not is_finished(conditions):
        conditions = _suspension(job, conditions, now)
        if jobset is not None:
            conditions = _copied(conditions, jobset.status.conditions or (), now)
        if ready_jobs(jobs) > ready_jobs(job.status.jobs_status) and not is_finished(conditions):
            conditions = _running(job, conditions)
    return TrainJobStatus(conditions=list(conditions), jobs_status=list(jobs), runtime_digest=job.status.runtime_digest)


def fail(status: TrainJobStatus, reason: str, message: str, now: datetime) -> TrainJobStatus:
    """Return the status with the TrainJob failed for a reason of our own."""
    failed = Condition(names.FAILED, "True", reason, message)
    return msgspec.structs.replace(status, conditions=upsert(status.conditions, failed, now))


def record(status: TrainJobStatus, digest: str, *, at_once: bool) -> TrainJobStatus:
    """Return the status with the digest of the runtime that the TrainJob began with.

    A TrainJob that was made to run a moment ago has its first counts soon, and the digest goes with them: a write of
    its own for each new TrainJob would cost an API server a quarter of its pace. `at_once` says not to wait for them.
    """
    if not digest or not (at_once or status.jobs_status or status.conditions):
        return status
    return msgspec.structs.replace(status, runtime_digest=digest)


def is_finished(conditions: Iterable[Condition]) -> bool:
    """Return whether a TrainJob is over, for better or worse."""
    return any(
        condition.status == "True" and condition.type in {names.COMPLETE, names.FAILED} for condition in conditions
    )


def is_stopped(conditions: Iterable[Condition]) -> bool:
    """Return whether we failed the TrainJob, and not its JobSet: whose pods, if it has any, are to go."""
    failed = find(conditions, names.FAILED)
    return failed is not None and failed.status == "True" and failed.reason in _STOPS


def ready_jobs(jobs: Iterable[JobStatus]) -> int:
    """Return how many Jobs have all their pods ready, or had."""
    return sum(job.ready + job.succeeded for job in jobs)


def merge_patch(before: TrainJob, after: TrainJobStatus) -> Tree | None:
    """Return the merge patch that brings the status up to date; None if it is.

    It names only what changed, so what others report (`trainerStatus`) is not touched, and holds only for the version
    that was read, so conditions which somebody else has just written are not lost.
    """
    old = before.status
    changes: Tree = {}
    if old.conditions != after.conditions:
        changes["conditions"] = [_written(condition) for condition in after.conditions] or None
    if old.jobs_status != after.jobs_status:
        changes["jobsStatus"] = [to_tree(job) for job in after.jobs_status] or None
    if old.runtime_digest != after.runtime_digest:
        changes["runtimeDigest"] = after.runtime_digest
    if not changes:
        return None
    nothing_left = not (after.conditions or after.jobs_status or old.trainer_status or after.runtime_digest)
    meta = {"resourceVersion": before.metadata.resource_version}
    # An empty status breaks its schema (minProperties), so it goes away altogether.
    return {"metadata": meta, "status": None if nothing_left else changes}


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


def _written(condition: Condition) -> Tree:
    """Return a condition as the API server wants it: every required field, empty or not."""
    return {"reason": "", "message": "", **to_tree(condition)}
