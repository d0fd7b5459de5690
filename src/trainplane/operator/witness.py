"""What the pods of a TrainJob add to what its JobSet says: how many are ready, what went wrong first, and the phase.

A JobSet that failed says that a Job failed, a Job that its pods did. People want to know why. So the first fault is
read when it happens and kept in the status, and the Failed condition says it; what JobSet said stands behind it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import names
from trainplane.api.meta import is_true
from trainplane.explain import faults
from trainplane.lifecycle.conditions import is_finished
from trainplane.lifecycle.phase import PENDING, QUEUED, SUSPENDED, Phase, PodCounts, phase_of
from trainplane.lifecycle.timeline import Attempt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.api.trainjob import TrainJob, TrainJobStatus
    from trainplane.kube.clock import Clock
    from trainplane.kube.resource import Key
    from trainplane.operator.evidence import Evidence
    from trainplane.operator.pods import PodMirror, SeenPod
    from trainplane.operator.stores import SeenJobSet

LATE_SECONDS: Final = 3.0
"""How long after its JobSet a TrainJob may fail, if no pod tells why yet: the watch of pods may be behind JobSets'."""

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
        restarts = jobset.status.restarts
        pods = [pod for pod in self.pods.of(key, jobset.meta.uid) if pod.attempt == restarts]
        goes = jobset.expires or jobset.meta.deletion_timestamp is not None
        return Sighting(_count(pods, jobset.trainers), restarts, pods, goes)

    async def testify(self, key: Key, job: TrainJob, after: TrainJobStatus, seen: Sighting) -> TrainJobStatus | None:
        """Return the status with what went wrong first, and why it failed if it did; None if that may still come."""
        after = await self._with_fault(key, job, after, seen)
        if not seen.goes and self._is_early(key, job.status, after, seen.restarts):
            return None
        return _with_cause(job.status, after, seen.restarts)

    async def _with_fault(self, key: Key, job: TrainJob, after: TrainJobStatus, seen: Sighting) -> TrainJobStatus:
        """Return the status with what went wrong first.

        Pods that are stopped on purpose ended as they should, unless the JobSet had failed before it heard of that.
        """
        if is_finished(job.status.conditions):
            return after
        if job.spec.suspend and not is_true(after.conditions, names.FAILED):
            return msgspec.structs.replace(after, first_fault=None)
        kept = after.first_fault
        fault = await self.evidence.first_fault(
            key, seen.pods, kept if kept is not None and kept.restart == seen.restarts else None
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


def _with_cause(before: TrainJobStatus, after: TrainJobStatus, restarts: int) -> TrainJobStatus:
    """Return the status whose Failed condition, if its JobSet brought it just now, says what went wrong first."""
    fault = after.first_fault
    if fault is None or fault.restart != restarts or is_finished(before.conditions):
        return after
    conditions = [
        msgspec.structs.replace(one, message=f"{faults.sentence(fault)} (JobSet: {one.message})")
        if (one.type, one.status) == (names.FAILED, "True")
        else one
        for one in after.conditions
    ]
    return msgspec.structs.replace(after, conditions=conditions)


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
