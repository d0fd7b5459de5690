"""Where a TrainJob stands, in one word, and why, in another. Pure.

    Suspended    spec.suspend holds it back
    Queued       Kueue holds it back, until there is quota
    Pending      it may run, and its pods are not ready yet
    Running      pods are ready
    Restarting   something went wrong, and it is tried again
    Succeeded, Failed

Conditions cannot say it: the official SDK takes a TrainJob with any condition for one that does not run. So it is a
field beside them, which who does not know it drops. The words of a pod's phase are used where they mean the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from trainplane.api import names
from trainplane.lifecycle.after import awaited
from trainplane.lifecycle.conditions import finish
from trainplane.lifecycle.status import ready_jobs

if TYPE_CHECKING:
    from trainplane.api.meta import Condition
    from trainplane.api.trainjob import TrainJob, TrainJobStatus

SUSPENDED: Final = "Suspended"
QUEUED: Final = "Queued"
PENDING: Final = "Pending"
RUNNING: Final = "Running"
RESTARTING: Final = "Restarting"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"


class Phase(NamedTuple):
    """A phase and its reason, which may be empty."""

    name: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PodCounts:
    """How the pods of a TrainJob's present attempt are doing."""

    wanted: int = 0
    """Pods of the training, as its JobSet has them; 0 if that is not known."""
    ready: int = 0
    """Of these, those that are ready or done."""
    running: int = 0
    """Pods of any step in which a container runs, and those of the training that have done their work."""
    scheduled: int = 0
    """Pods of the training that have a machine."""
    wait: str = ""
    """What one of them waits for that may not come by itself."""
    again: bool = False
    """Whether a container was started again, or a pod took another's place."""

    @property
    def shown(self) -> str:
        """How many are ready, of how many; empty if that is not known."""
        return f"{self.ready}/{self.wanted}" if self.wanted else ""


def phase_of(job: TrainJob, status: TrainJobStatus, pods: PodCounts, *, restarts: int = 0) -> Phase:
    """Return the phase of a TrainJob whose status is as given otherwise."""
    end = finish(status.conditions)
    if end is not None:
        return _ended(status, end)
    if _is_held(job, status):
        queue = job.metadata.labels.get(names.LABEL_QUEUE)
        waits_for = "TrainJob" if awaited(job.metadata.annotations) else "Quota"
        return Phase(QUEUED, f"WaitsFor{waits_for}") if queue else Phase(SUSPENDED, "SpecSuspend")
    if pods.running or ready_jobs(status.jobs_status):
        return Phase(RUNNING)
    cause = status.first_fault.cause if status.first_fault is not None else ""
    if restarts or pods.again:
        return Phase(RESTARTING, pods.wait or cause)
    if cause:  # whether it is tried again is not known yet: JobSet says so, or that it failed
        return Phase(status.phase or PENDING, cause)
    return Phase(PENDING, pods.wait)


def _ended(status: TrainJobStatus, end: Condition) -> Phase:
    if end.type == names.COMPLETE:
        return Phase(SUCCEEDED)
    fault = status.first_fault
    return Phase(FAILED, fault.cause if fault is not None else end.reason)


def _is_held(job: TrainJob, status: TrainJobStatus) -> bool:
    """Return whether a TrainJob is held back; one that a queue dispatches is while no worker counts its Jobs."""
    if job.spec.managed_by != names.MANAGED_BY_MULTIKUEUE or names.LABEL_QUEUE not in job.metadata.labels:
        return bool(job.spec.suspend)
    return not any(one.active or one.ready or one.succeeded for one in status.jobs_status)
