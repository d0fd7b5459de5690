"""What happens next to the pods of a job: the rules of JobSet and of the Job controller. Pure.

decide(plan, pods, failures, restarts)
  ├── Start(places)              these pods may start now
  ├── Finish(Complete | Failed)  the job is over
  └── Restart                    all pods end, and all begin anew
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api.meta import Condition
from trainplane.api.trainjob import JobStatus
from trainplane.client.backends.local.pods import COMPLETE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trainplane.api.podindex import PodIndex
    from trainplane.client.backends.local.pods import LocalJob, LocalJobSet

SUPERVISOR_ENDED: Final = "SupervisorEnded"
"""The reason of a job whose supervisor is gone before the job was over."""
BACKOFF_LIMIT: Final = "BackoffLimitExceeded"
POD_POLICY: Final = "PodFailurePolicy"
ALL_COMPLETED: Final = "AllJobsCompleted"
FAILED_JOBS: Final = "FailedJobs"
REACHED_MAX_RESTARTS: Final = "ReachedMaxRestarts"
FAIL_ACTION: Final = "FailJobSetFailurePolicyAction"


@dataclass(frozen=True)
class PodState:
    """As much of a pod as decides what comes next."""

    place: PodIndex
    phase: str
    ready: bool = False


@dataclass(frozen=True)
class Decision:
    """What to do next."""

    start: tuple[PodIndex, ...] = ()
    condition: Condition | None = None
    """The JobSet's condition with which the job is over."""
    restart: bool = False
    counts: bool = True
    """Whether a restart counts towards the most that there may be."""


def decide(
    plan: LocalJobSet, pods: Sequence[PodState], failures: Mapping[tuple[str, int], int], restarts: int
) -> Decision:
    """Return what comes next.

    Args:
        plan: All pods that there shall be.
        pods: Those that there are.
        failures: How many containers of each Job failed, by replicated job and replica.
        restarts: How often all began anew.
    """
    jobs = {job.name: Standing.of(job, pods, failures) for job in plan.jobs}
    failed = next((standing for standing in jobs.values() if standing.failed), None)
    if failed is not None:
        return _after_failure(plan, failed, restarts)
    if _is_complete(plan, jobs):
        message = f"all Jobs of {', '.join(job.name for job in plan.jobs if job.name in plan.succeeds_with)} completed"
        return Decision(condition=Condition(names.JOBSET_COMPLETED, "True", ALL_COMPLETED, message))
    return Decision(start=tuple(_due(plan, jobs, pods)))


@dataclass(frozen=True)
class Standing:
    """How far the Jobs of a replicated job are, as JobSet counts them."""

    job: LocalJob
    succeeded: frozenset[int] = field(default_factory=frozenset)
    failed: frozenset[int] = field(default_factory=frozenset)
    active: frozenset[int] = field(default_factory=frozenset)
    ready: frozenset[int] = field(default_factory=frozenset)

    @classmethod
    def of(cls, job: LocalJob, pods: Sequence[PodState], failures: Mapping[tuple[str, int], int]) -> Standing:
        """Count the pods of a replicated job."""
        succeeded, failed, active, ready = set[int](), set[int](), set[int](), set[int]()
        for replica in range(job.replicas):
            mine = [pod for pod in pods if (pod.place.replicated_job, pod.place.job_index) == (job.name, replica)]
            done = sum(pod.phase == "Succeeded" for pod in mine)
            alive = [pod for pod in mine if pod.phase in {"Pending", "Running"}]
            if failures.get((job.name, replica), 0) > job.retries:
                failed.add(replica)
            elif done >= job.completions:
                succeeded.add(replica)
            if alive:
                active.add(replica)
            if done + sum(pod.ready for pod in alive) >= min(job.parallelism, job.completions):
                ready.add(replica)
        return cls(job, frozenset(succeeded), frozenset(failed), frozenset(active), frozenset(ready))

    def status(self, *, suspended: bool = False) -> JobStatus:
        """Return the entry of the JobSet's status."""
        return JobStatus(
            name=self.job.name,
            ready=len(self.ready - self.succeeded - self.failed) if not suspended else 0,
            succeeded=len(self.succeeded),
            failed=len(self.failed),
            active=len(self.active),
            suspended=self.job.replicas if suspended else 0,
        )

    def is_met(self, status: str) -> bool:
        """Return whether others that wait for this status may start."""
        count = len(self.succeeded) if status == COMPLETE else len(self.ready)
        return count >= self.job.replicas


def failed_by(reason: str, message: str) -> Condition:
    """Return the JobSet's condition of a job that failed."""
    return Condition(names.JOBSET_FAILED, "True", reason, message)


def _after_failure(plan: LocalJobSet, failed: Standing, restarts: int) -> Decision:
    name = f"{plan.name}-{failed.job.name}-{min(failed.failed)}"
    reason = POD_POLICY if failed.job.final else BACKOFF_LIMIT
    rule = next(
        (
            rule
            for rule in plan.failure_rules
            if (not rule.jobs or failed.job.name in rule.jobs) and (not rule.reasons or reason in rule.reasons)
        ),
        None,
    )
    action = rule.action if rule else "RestartJobSet"
    if action == "FailJobSet":
        message = f"Job {name} failed, and the runtime's failurePolicy ends the TrainJob then"
        return Decision(condition=failed_by(FAIL_ACTION, message))
    if action == "RestartJobSetAndIgnoreMaxRestarts":
        return Decision(restart=True, counts=False)
    if restarts < plan.max_restarts:
        return Decision(restart=True)
    if plan.max_restarts:
        message = f"Job {name} failed after {restarts} restart{'s' * (restarts != 1)}, as many as there may be"
        return Decision(condition=failed_by(REACHED_MAX_RESTARTS, message))
    return Decision(condition=failed_by(FAILED_JOBS, f"Job {name} failed"))


def _is_complete(plan: LocalJobSet, jobs: Mapping[str, Standing]) -> bool:
    wanted = [jobs[name] for name in plan.succeeds_with if name in jobs]
    if plan.any_suffices:
        return any(standing.succeeded for standing in wanted)
    return bool(wanted) and all(len(standing.succeeded) >= standing.job.replicas for standing in wanted)


def _due(plan: LocalJobSet, jobs: Mapping[str, Standing], pods: Sequence[PodState]) -> Iterator[PodIndex]:
    """Yield the places whose pod may start and is not there."""
    taken = {pod.place for pod in pods if pod.phase != "Failed"}
    for job in plan.jobs:
        if not all(jobs[name].is_met(status) for name, status in job.depends_on if name in jobs):
            continue
        for replica in range(job.replicas):
            alive = sum(pod.phase in {"Pending", "Running"} for pod in pods if pod.place[:2] == (job.name, replica))
            free = [place for place in job.places if place.job_index == replica and place not in taken]
            yield from free[: max(0, job.parallelism - alive)]
