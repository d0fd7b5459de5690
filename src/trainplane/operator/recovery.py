"""Decide whether a TrainJob restarts when an attempt of it has ended. Pure.

An attempt is one run of all pods, by one JobSet. Its JobSet says how it ended; this says what follows:

    a disruption     a pod was suspended, drained, preempted, deleted, or lost with its node: restart, not counted
    a certain error  in the user's code or spec, or another of the user's errors twice in a row: the TrainJob has failed
    another fault    of a device, the network, a peer, or of an unknown cause: restart, up to the runtime's maxRestarts

A disruption neither fails nor completes a TrainJob: a pod that exits with 0 because it was stopped has not finished.

A restart is decided by one write: `status.restarts` becomes larger than the attempt of the JobSet. From then on the
JobSet is outdated, whatever it reports: it is deleted with its pods, and another one is created (`is_outdated`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from trainplane.api import names
from trainplane.api.meta import is_true
from trainplane.explain import faults
from trainplane.explain.catalogue import class_of
from trainplane.lifecycle import timeline
from trainplane.lifecycle.conditions import ENDS, is_finished
from trainplane.lifecycle.status import with_failure

if TYPE_CHECKING:
    from trainplane.api.trainjob import FirstFault, TrainJob, TrainJobStatus
    from trainplane.operator.stores import SeenJobSet
    from trainplane.operator.witness import Sighting

EARLY: Final = timedelta(minutes=10)
"""An attempt that fails this soon is taken to have made no progress."""
MOST_RESTARTS: Final = 2**31 - 1
"""The largest count that the status can hold. Only a label that a user has changed makes it so large."""
SUSPENDED: Final = "the TrainJob was suspended"
_OF_THE_NODE: Final = frozenset({"CudaError", "GpuMissing", "PortTaken", "DiskFull"})
"""Causes that may be the node's, which pods may come back to: a repetition does not show that the user caused it."""


class Restart(NamedTuple):
    """A restart of a TrainJob."""

    reason: str
    """Why, as the end of a sentence."""
    counts: bool
    """Whether it counts towards the runtime's maxRestarts."""


class Refusal(NamedTuple):
    """The decision not to restart a TrainJob that has failed."""

    reason: str
    """Why it is not restarted, as the end of a sentence; empty if its runtime restarts nothing."""


def is_outdated(job: TrainJob, jobset: SeenJobSet) -> bool:
    """Return whether a TrainJob is to run a later attempt than its JobSet does."""
    return not is_finished(job.status.conditions) and job.status.restarts > jobset.attempt


def after_disruption(job: TrainJob, status: TrainJobStatus, jobset: SeenJobSet, seen: Sighting) -> Restart | None:
    """Return the restart of a TrainJob whose attempt ended, or can no longer succeed, because of a disruption.

    Args:
        job: the TrainJob as it is stored.
        status: its status, with the end of the JobSet and the first fault of the attempt.
        jobset: its JobSet, which is not outdated.
        seen: the pods of the attempt.
    """
    if not _may_restart(job, status) or jobset.meta.deletion_timestamp is not None:
        return None
    fault = present_fault(status, jobset)
    failed = is_true(status.conditions, names.FAILED)
    if failed and (job.spec.suspend or (fault is None and seen.was_suspended)):
        return Restart(SUSPENDED, counts=False)
    if failed:
        return Restart(_stop(fault), counts=False) if fault is not None and faults.is_stop(fault) else None
    completed = is_true(status.conditions, names.COMPLETE)
    if seen.unfinished and (completed or not job.spec.suspend):
        pod = seen.unfinished[0]
        return Restart(f"pod {pod.metadata.name} was stopped before it had finished, and exited with 0", counts=False)
    if completed and fault is not None and faults.is_stop(fault) and _is_missing(fault, jobset, seen):
        return Restart(_stop(fault), counts=False)
    return None


def after_fault(
    job: TrainJob, status: TrainJobStatus, jobset: SeenJobSet, seen: Sighting, max_restarts: int
) -> Restart | Refusal:
    """Return the restart of a TrainJob whose attempt failed by a fault, or why the TrainJob has failed with it."""
    fault = present_fault(status, jobset)
    counted = job.status.restarts_count_towards_max
    if not max_restarts or not _may_restart(job, status):
        return Refusal("")
    if counted >= max_restarts:
        return Refusal(f"{counted} of {max_restarts} restarts are used")
    if fault is None:
        return Restart(f"a fault of an unknown cause ({counted + 1} of {max_restarts})", counts=True)
    early = _is_early(fault, seen)
    if early and faults.is_certain_error(fault):
        return Refusal("the error would come again")
    if early and _is_repeated(job, fault):
        return Refusal("the attempt before failed by the same cause")
    return Restart(f"{timeline.fault_reason(fault)} ({counted + 1} of {max_restarts})", counts=True)


def restarted(status: TrainJobStatus, restart: Restart) -> TrainJobStatus:
    """Return the status of a TrainJob that restarts: without an end, with the number of the next attempt.

    `status.restarts` is the number of the present attempt before.
    """
    return msgspec.structs.replace(
        without_progress(status),
        conditions=[one for one in status.conditions if one.type not in ENDS],
        restarts=status.restarts + 1,
        restarts_count_towards_max=status.restarts_count_towards_max + restart.counts,
    )


def failed(status: TrainJobStatus, refusal: Refusal) -> TrainJobStatus:
    """Return the status of a TrainJob whose condition Failed says also why it is not restarted."""
    if not refusal.reason:
        return status
    words = f" Not restarted: {refusal.reason}."
    return with_failure(status, lambda message: message.removesuffix(words) + words)


def without_progress(status: TrainJobStatus) -> TrainJobStatus:
    """Return the status in which no Job of the outdated JobSet counts as ready or done."""
    jobs = [msgspec.structs.replace(one, ready=0, succeeded=0) for one in status.jobs_status]
    return msgspec.structs.replace(status, jobs_status=jobs)


def present_fault(status: TrainJobStatus, jobset: SeenJobSet) -> FirstFault | None:
    """Return the first fault of the JobSet's present attempt."""
    fault = status.first_fault
    return fault if fault is not None and fault.restart == jobset.attempt else None


def _may_restart(job: TrainJob, status: TrainJobStatus) -> bool:
    return job.metadata.deletion_timestamp is None and status.restarts < MOST_RESTARTS


def _is_missing(fault: FirstFault, jobset: SeenJobSet, seen: Sighting) -> bool:
    """Return whether a pod that was stopped is gone, and no other pod has finished in its place."""
    done = (pod for pod in seen.pods if pod.is_done and not pod.is_stopped and pod.step == fault.step)
    finished = {pod.place.completion_index or pod.place.job_index for pod in done}
    return jobset.must_succeed(fault.step) and fault.index not in finished


def _stop(fault: FirstFault) -> str:
    return f"{faults.step_of(fault)} {class_of(fault.cause).says}"


def _is_early(fault: FirstFault, seen: Sighting) -> bool:
    """Return whether an attempt failed soon after its pods were created."""
    if fault.time is None or seen.began is None:
        return True
    return fault.time - seen.began < EARLY


def _is_repeated(job: TrainJob, fault: FirstFault) -> bool:
    """Return whether the attempt before failed by the same cause, and one that is the user's and does not heal."""
    kind = class_of(fault.cause)
    if kind.heals or kind.certainty != "certain" or fault.cause in _OF_THE_NODE:
        return False
    before = [one for one in job.status.timeline if (one.stage, one.number) == (timeline.RESTARTED, fault.restart)]
    return any(one.reason.partition(" ")[0] == fault.cause for one in before)
