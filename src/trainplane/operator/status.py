"""The write of a TrainJob's status: what changed, as one merge patch. Pure; `lifecycle.status` says what is true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import names
from trainplane.api.document import to_tree
from trainplane.api.meta import is_true, whole_seconds
from trainplane.lifecycle.conditions import is_finished
from trainplane.lifecycle.status import has_pods, ready_jobs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.api.meta import Condition
    from trainplane.api.trainjob import FirstFault, TrainJob, TrainJobStatus
    from trainplane.api.tree import Tree


ADDED: Final = frozenset(
    {
        "runtimeDigest",
        "phase",
        "reason",
        "nodesReady",
        "firstFault",
        "restarts",
        "restartsCountTowardsMax",
        "timeline",
    }
)
"""Fields that the reference's CRD does not know, and drops."""


RESUMED_SECONDS: Final = 1.0
"""How long it may take until a TrainJob that is held back no more says so: most have pods by then, and say both."""
STARTED_SECONDS: Final = 1.5
"""How long it may take until a TrainJob without a queue says that it runs: if it ends sooner, it says that instead."""
UNHURRIED_SECONDS: Final = 5.0
"""How long a change that nobody waits for may wait for one that somebody does."""


def record(status: TrainJobStatus, digest: str, *, at_once: bool) -> TrainJobStatus:
    """Return the status with the digest of the runtime that the TrainJob began with.

    A TrainJob that was made to run a moment ago has its first counts soon, and the digest goes with them: a write of
    its own for each new TrainJob would cost an API server a quarter of its pace. `at_once` says not to wait for them.
    """
    if not digest or not (at_once or status.jobs_status or status.conditions):
        return status
    return msgspec.structs.replace(status, runtime_digest=digest)


def patience(before: TrainJob, after: TrainJobStatus) -> float:
    """Return for how many seconds a change may wait for the next one, and go with it.

    People and Kueue wait for conditions and for what went wrong. Kueue gives quota to others when the last pod of a
    TrainJob is gone that it stopped, so it must know that there are any, and when they go; and it may wait for pods to
    be ready before it admits another. Of TrainJobs without a queue, people do not see a second. Every other count is
    news that nobody waits for: a write for each would double what a TrainJob costs.
    """
    now, queued = before.status, names.LABEL_QUEUE in before.metadata.labels
    if is_finished(now.conditions):
        return 0.0  # there is nothing more to come that it could go with
    if now.first_fault != after.first_fault or _stops(now) != _stops(after) or now.restarts != after.restarts:
        return 0.0
    if queued and has_pods(after.jobs_status) and not has_pods(now.jobs_status):
        return 0.0
    if now.conditions != after.conditions:
        return RESUMED_SECONDS if _resumes(now, after) else 0.0
    if _readiness(now) != _readiness(after):
        return 0.0 if queued else STARTED_SECONDS
    return UNHURRIED_SECONDS


def _resumes(now: TrainJobStatus, after: TrainJobStatus) -> bool:
    """Return whether all that changes of the conditions is that a TrainJob is no longer held back."""
    if not is_true(now.conditions, names.SUSPENDED) or is_true(after.conditions, names.SUSPENDED):
        return False
    return _others(now.conditions) == _others(after.conditions)


def _others(conditions: Iterable[Condition]) -> list[Condition]:
    return [one for one in conditions if one.type != names.SUSPENDED]


def _readiness(status: TrainJobStatus) -> tuple[bool, bool]:
    """Return whether any Job of a TrainJob is ready, and whether all are."""
    some = ready_jobs(status.jobs_status) > 0
    return some, some and all(job.ready + job.succeeded for job in status.jobs_status)


def _stops(status: TrainJobStatus) -> bool:
    """Return whether a TrainJob is held back and has pods."""
    return is_true(status.conditions, names.SUSPENDED) and has_pods(status.jobs_status)


def merge_patch(before: TrainJob, after: TrainJobStatus) -> Tree | None:
    """Return the merge patch that brings the status up to date; None if it is.

    It names only what changed, so what others report (`trainerStatus`) is not touched, and holds only for the version
    that was read, so conditions which somebody else has just written are not lost.
    """
    old = before.status
    changes: Tree = {}
    if old.conditions != after.conditions:
        changes["conditions"] = [written(condition) for condition in after.conditions] or None
    if old.jobs_status != after.jobs_status:
        changes["jobsStatus"] = [to_tree(job) for job in after.jobs_status] or None
    if old.runtime_digest != after.runtime_digest:
        changes["runtimeDigest"] = after.runtime_digest
    if old.first_fault != after.first_fault:
        changes["firstFault"] = _replacing(old.first_fault, after.first_fault)
    if old.timeline != after.timeline:
        changes["timeline"] = [to_tree(one) for one in after.timeline] or None
    changes |= {
        name: now or None
        for name, was, now in (
            ("phase", old.phase, after.phase),
            ("reason", old.reason, after.reason),
            ("nodesReady", old.nodes_ready, after.nodes_ready),
            ("restarts", old.restarts, after.restarts),
            ("restartsCountTowardsMax", old.restarts_count_towards_max, after.restarts_count_towards_max),
        )
        if was != now
    }
    if not changes:
        return None
    nothing_left = not (
        after.conditions or after.jobs_status or old.trainer_status or after.runtime_digest or after.phase
    )
    meta = {"resourceVersion": before.metadata.resource_version}
    # An empty status breaks its schema (minProperties), so it goes away altogether.
    return {"metadata": meta, "status": None if nothing_left else changes}


def _replacing(before: FirstFault | None, after: FirstFault | None) -> Tree | None:
    """Return the merge patch that replaces a whole object: fields that are left out would keep their old values."""
    if after is None:
        return None
    gone: Tree = {} if before is None else dict.fromkeys(to_tree(before))
    return gone | to_tree(after)


def written(condition: Condition) -> Tree:
    """Return a condition as Kubernetes writes it: every required field, empty or not, and times in whole seconds."""
    since = condition.last_transition_time
    if since is not None:
        condition = msgspec.structs.replace(condition, last_transition_time=whole_seconds(since))
    return {"reason": "", "message": "", **to_tree(condition)}
