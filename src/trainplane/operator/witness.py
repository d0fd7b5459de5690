"""What the pods of a TrainJob add to what its JobSet says: how many are ready, what went wrong first, and the phase.

A JobSet that failed says that a Job failed, a Job that its pods did. People want to know why. So the first fault is
read when it happens and kept in the status, and the Failed condition says it; what JobSet said stands behind it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import names
from trainplane.api.meta import find, is_true
from trainplane.api.moments import read_moment
from trainplane.explain import faults
from trainplane.lifecycle.conditions import is_finished
from trainplane.lifecycle.phase import PENDING, QUEUED, SUSPENDED, Phase, PodCounts, phase_of
from trainplane.lifecycle.status import with_failure
from trainplane.lifecycle.timeline import Attempt
from trainplane.operator.evidence import SURVIVED, Evidence

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from trainplane.api.trainjob import TrainJob, TrainJobStatus
    from trainplane.kube.clock import Clock
    from trainplane.kube.resource import Key
    from trainplane.operator.pods import PodMirror, SeenPod
    from trainplane.operator.stores import SeenJobSet

LATE_SECONDS: Final = 3.0
"""How long after its JobSet a TrainJob may fail, if no pod tells why yet: the watch of pods may be behind JobSets'."""

RESUME_TOLERANCE: Final = timedelta(seconds=1)
"""How much later than its pods a JobSet can say that it was resumed: times are in whole seconds."""

_PREPARING: Final = frozenset({names.JOB_DATASET, names.JOB_MODEL})


@dataclass(frozen=True, slots=True)
class Sighting:
    """A TrainJob's pods as one reconcile meets them."""

    counts: PodCounts = field(default_factory=PodCounts)
    restarts: int = 0
    pods: Sequence[SeenPod] = ()
    """Those of the JobSet's present attempt."""
    goes: bool = False
    """Whether the JobSet may be gone soon: then its end is told at once, or the training would run again."""
    recent: Sequence[SeenPod] = ()
    """The pods that were created since the last resume: a suspension stopped the others."""
    stopped: Sequence[SeenPod] = ()
    """Recent pods that were stopped from outside: disrupted, or deleted by a user."""
    unfinished: Sequence[SeenPod] = ()
    """Pods that exited with 0 because they were stopped, and whose success the JobSet needs."""

    resumed: bool = False
    """Whether the JobSet was suspended before, and resumed."""

    @property
    def was_suspended(self) -> bool:
        """Whether an attempt that failed did so only because of its pods from before the last resume."""
        if not self.resumed or any(pod.is_damaged for pod in self.recent):
            return False
        return not self.recent or any(pod.is_damaged for pod in self.pods)

    @property
    def began(self) -> datetime | None:
        """When the first pod was created."""
        return read_moment(min((pod.metadata.creation_timestamp or "" for pod in self.recent), default=""))

    def attempt(self, *, with_pods: bool) -> Attempt:
        """Return the pods as a timeline looks at them, if it does; of those that took another's place, the living."""
        living = [pod for pod in self.pods if pod.removed_at is None] if with_pods else []
        return Attempt(
            trainers=[pod.times for pod in living if pod.step not in _PREPARING],
            initializers=[pod.times for pod in living if pod.step in _PREPARING],
            wanted=self.counts.wanted,
            restarts=self.restarts,
            again=self.counts.again,
        )


@dataclass
class Witness:
    """Looks at the pods of TrainJobs."""

    pods: PodMirror
    evidence: Evidence
    clock: Clock

    def __post_init__(self) -> None:
        self._failing: dict[Key, float] = {}

    def look(self, key: Key, jobset: SeenJobSet | None) -> Sighting:
        """Return how the pods of a JobSet's present attempt are doing."""
        if jobset is None:
            return Sighting()
        pods = [pod for pod in self.pods.of(key, jobset.meta.uid) if pod.attempt == jobset.attempt]
        goes = jobset.expires or jobset.meta.deletion_timestamp is not None
        resumed = _resumed_at(jobset)
        recent = pods if resumed is None else [pod for pod in pods if pod.created_at + RESUME_TOLERANCE >= resumed]
        return Sighting(
            _count(pods, jobset.trainers),
            jobset.attempt,
            pods,
            goes,
            recent,
            [] if jobset.suspended else stopped_pods(recent, jobset, goes=goes),
            unfinished_pods(pods, jobset, goes=goes),
            resumed=resumed is not None,
        )

    async def testify(self, key: Key, job: TrainJob, after: TrainJobStatus, seen: Sighting) -> TrainJobStatus | None:
        """Return the status with what went wrong first, and why it failed if it did; None if that may still come."""
        after = await self._with_fault(key, job, after, seen)
        if not (seen.goes or job.spec.suspend) and self._is_early(key, job.status, after, seen.restarts):
            return None
        return _with_cause(job.status, after, seen.restarts)

    async def _with_fault(self, key: Key, job: TrainJob, after: TrainJobStatus, seen: Sighting) -> TrainJobStatus:
        """Return the status with what went wrong first.

        Pods of a suspended TrainJob are stopped on purpose: however they end, that is no fault. A pod that was stopped
        before stays in the status: it may have exited with 0, and must not complete the TrainJob.
        """
        if is_finished(job.status.conditions):
            return after
        kept = after.first_fault
        if job.spec.suspend:
            stays = kept is not None and kept.restart == seen.restarts and faults.is_stop(kept)
            return after if stays else msgspec.structs.replace(after, first_fault=None)
        fault = await self.evidence.first_fault(
            key, seen.recent, seen.stopped, kept if kept is not None and kept.restart == seen.restarts else None
        )
        return after if fault is None else msgspec.structs.replace(after, first_fault=fault)

    def _is_early(self, key: Key, before: TrainJobStatus, after: TrainJobStatus, restarts: int) -> bool:
        """Return whether a TrainJob is about to fail by its JobSet without a cause that may still come."""
        if is_finished(before.conditions) or not is_true(after.conditions, names.FAILED):
            return False
        told = after.first_fault is not None and after.first_fault.restart == restarts
        if told and self.evidence.is_settled(key):
            return False
        now = self.clock.monotonic()  # the JobSet's own clock may be another
        return now - self._failing.setdefault(key, now) < LATE_SECONDS

    def forget(self, key: Key) -> None:
        """Forget a TrainJob that is finished or gone."""
        self.evidence.forget(key)
        self._failing.pop(key, None)


def stopped_pods(pods: Sequence[SeenPod], jobset: SeenJobSet, *, goes: bool) -> list[SeenPod]:
    """Return the pods that were stopped from outside.

    The condition DisruptionTarget is certain. A deletion alone may also come from the Job controller: soon after a pod
    has failed, past a deadline, or when a success policy is satisfied.
    """
    stopped = [pod for pod in pods if pod.is_stopped]
    ends = [end for pod in pods if stopped and not pod.is_stopped for end in pod.bad_ends]
    return [
        pod
        for pod in stopped
        if pod.disrupted_at is not None
        or (_is_by_user(pod, pods, jobset, goes=goes) and not _follows(pod.removed_at, ends, in_doubt=False))
    ]


def _follows(removed: datetime | None, ends: Sequence[datetime], *, in_doubt: bool) -> bool:
    """Return whether a pod was deleted soon after another one had failed; `in_doubt` decides within one second."""
    if removed is None:
        return False
    return any(end < removed <= end + SURVIVED or (in_doubt and end == removed) for end in ends)


def unfinished_pods(pods: Sequence[SeenPod], jobset: SeenJobSet, *, goes: bool) -> list[SeenPod]:
    """Return the pods that exited with 0 because they were stopped, and whose success the JobSet needs."""
    places = {pod.place for pod in pods if not (pod.is_stopped or pod.removed_at is not None)}
    ends = [end for pod in pods if not pod.is_stopped for end in pod.bad_ends]
    return [
        pod
        for pod in pods
        if pod.is_done
        and pod.is_stopped
        and jobset.must_succeed(pod.step)
        and pod.place not in places  # another pod has taken its place
        and (
            pod.disrupted_at is not None
            or (_is_by_user(pod, pods, jobset, goes=goes) and not _follows(pod.removed_at, ends, in_doubt=True))
        )
    ]


def _is_by_user(pod: SeenPod, pods: Sequence[SeenPod], jobset: SeenJobSet, *, goes: bool) -> bool:
    """Return whether no controller deletes such a pod of a JobSet that has not ended."""
    if goes or jobset.deletes_pods:
        return False
    return jobset.must_succeed(pod.step) or not any(one.is_done and jobset.must_succeed(one.step) for one in pods)


def _resumed_at(jobset: SeenJobSet) -> datetime | None:
    """Return when a JobSet was last resumed; None if it never was, or is suspended."""
    suspended = find(jobset.status.conditions or (), names.SUSPENDED)
    return None if suspended is None or suspended.status == "True" else suspended.last_transition_time


def _with_cause(before: TrainJobStatus, after: TrainJobStatus, restarts: int) -> TrainJobStatus:
    """Return the status whose Failed condition, if its JobSet brought it just now, says what went wrong first."""
    fault = after.first_fault
    if fault is None or fault.restart != restarts or is_finished(before.conditions):
        return after
    return with_failure(after, lambda message: f"{faults.sentence(fault)} (JobSet: {message})")


def with_phase(job: TrainJob, after: TrainJobStatus, seen: Sighting, hindrance: str = "") -> TrainJobStatus:
    """Return the status with its phase and how many pods are ready; `hindrance` is why it may have none."""
    phase = phase_of(job, after, seen.counts, restarts=seen.restarts)
    if phase == Phase(PENDING):
        phase = Phase(PENDING, hindrance)
    ready = after.nodes_ready if is_finished(after.conditions) else seen.counts.shown
    if phase.name in {SUSPENDED, QUEUED}:
        ready = ""
    return msgspec.structs.replace(after, phase=phase.name, reason=phase.reason, nodes_ready=ready)


def _count(pods: Sequence[SeenPod], wanted: int) -> PodCounts:
    trainers = [pod for pod in pods if pod.step not in _PREPARING]
    living = [pod for pod in trainers if pod.removed_at is None]
    return PodCounts(
        wanted=wanted,
        ready=sum(pod.is_ready for pod in living),
        running=sum(pod.runs for pod in pods if pod.removed_at is None) + sum(pod.is_done for pod in living),
        scheduled=sum(pod.is_scheduled for pod in living),
        wait=next(filter(None, (pod.wait for pod in pods)), ""),
        again=any(pod.was_run_again for pod in pods) or len(pods) > len({pod.place for pod in pods}),
    )
