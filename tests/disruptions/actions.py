"""Disruptions and faults, each done to a TrainJob that trains, as a user, an admin, Kueue, or NCCL does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.disruptions.job import EndedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.disruptions.job import Job


def suspend(job: Job) -> None:
    """Suspend as Kueue's preemption does, and resume when the pods are gone."""
    job.set_suspend(suspend=True)
    job.wait_without_pods()
    job.set_suspend(suspend=False)


def suspend_briefly(job: Job) -> None:
    """Suspend, and resume while the pods are still stopping."""
    job.set_suspend(suspend=True)
    job.wait_stopping()
    job.set_suspend(suspend=False)


def delete_first(job: Job) -> None:
    """Delete the pod of rank 0."""
    job.delete_pod(0)


def delete_last(job: Job) -> None:
    """Delete the pod of the last rank."""
    job.delete_pod(job.nodes - 1)


def evict_first(job: Job) -> None:
    """Evict the pod of rank 0, as a drain does."""
    job.evict_pod(0)


def evict_last(job: Job) -> None:
    """Evict the pod of the last rank, as a drain does."""
    job.evict_pod(job.nodes - 1)


def abort(job: Job) -> None:
    """Let the last rank abort with 134, as NCCL's watchdog does."""
    job.abort(job.nodes - 1)


def preempt(victim: Job, urgent: Job) -> None:
    """Let an urgent TrainJob take the quota of another one, and complete."""
    urgent.submit()
    urgent.wait_training()
    assert victim.pods() == []
    urgent.finish()
    assert urgent.wait_end().startswith("Complete")


TALKING: Final = (suspend, delete_last, abort, suspend, evict_first, delete_first, suspend)
"""For pods that exit with an error when they are stopped."""
SAVING: Final = (evict_first, delete_last, suspend, evict_last, suspend)
"""For pods that save and exit with 0 when they are stopped."""
FEW: Final = (suspend, evict_last, delete_first, abort)
"""For each further runtime."""


def run(job: Job, actions: Iterable[Callable[[Job], None]]) -> Job:
    """Submit a TrainJob, do one thing after the other to it, let it finish; return it with its end.

    After each action, all ranks must train again, with rank 0 in another container.
    """
    job.submit()
    try:
        container = job.wait_training()
        for action in actions:
            action(job)
            container = job.wait_training(without=container)
            job.cycles += 1
        job.finish()
        job.end = job.wait_end()
    except EndedError as error:
        job.end = str(error)
    return job
