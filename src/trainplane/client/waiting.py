"""Waiting for a TrainJob, told by its watch: no polling, and never for what cannot come any more.

What a pod waits for may never come by itself: an image whose name is none, a Secret that is not there. People mend
that, or a pipeline that is about to create the Secret does; so it is given up after a while, which the caller sets. A
machine with room may come at any time, from an autoscaler or from a job that ends: that is waited for.
"""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from trainplane.client.errors import (
    InvalidError,
    JobDeletedError,
    JobFailedError,
    JobStuckError,
    JobTimeoutError,
    NotFoundError,
    TrainplaneError,
)
from trainplane.client.reading.causes import cause_of
from trainplane.client.types.jobs import COMPLETE, CREATED, FAILED, FINISHED, RUNNING, STATUSES, Cause
from trainplane.explain.catalogue import class_of
from trainplane.explain.explain import explain
from trainplane.explain.logs import SEARCHED_LINES, find_telling
from trainplane.explain.pods import ENDED, phase_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from trainplane.client.backends.backend import Backend
    from trainplane.client.types.jobs import TrainJob

_log = logging.getLogger(__name__)
HOPELESS = frozenset({"InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"})
"""Reasons for which a container waits until somebody does something."""
PULLING = frozenset({"ErrImagePull", "ImagePullBackOff"})
_NO_IMAGE = re.compile(r"not found|manifest unknown|does not exist", re.IGNORECASE)
"""What registries say of an image that they have not got; all else that they say may pass."""
TAIL_LINES = 10
"""Lines of the failed step that an error shows: a traceback's end."""
SETTLING_LOOKS = 5
"""How often, a second apart, is looked for the node that the others lost."""


async def wait(
    backend: Backend,
    name: str,
    wanted: Collection[str],
    timeout_seconds: float,
    callbacks: Sequence[Callable[[TrainJob], None]] = (),
    *,
    stuck_seconds: float | None = None,
) -> TrainJob:
    """Return the TrainJob as soon as its status is one of `wanted`; `callbacks` see each change before that.

    Raises:
        JobFailedError: it failed, and that was not wanted; with the first fault and its last lines.
        JobTimeoutError: it is still somewhere else.
        JobStuckError: for `stuck_seconds` it has waited for what will not come by itself.
        JobDeletedError: it is gone.
        NotFoundError: it never was there.
    """
    check_wanted(wanted, timeout_seconds)
    job: TrainJob | None = None
    fault: Cause | None = None
    patience = Patience(asyncio.get_running_loop().time, timeout_seconds, stuck_seconds)
    try:
        async with asyncio.timeout_at(patience.end) as limit:
            async with aclosing(backend.watch_job(name)) as changes:
                async for job in changes:
                    limit.reschedule(patience.until(job))
                    for callback in callbacks:
                        callback(job)
                    if settled(job.status, wanted):
                        return job
                    if job.status == FAILED:
                        raise JobFailedError(job, await first_fault(backend, job, fault))
                    if job.status == COMPLETE:
                        raise TrainplaneError(f"TrainJob {name} is Complete and will not become {named(wanted)}")
                    if not (fault and fault.log_tail) and job.cause and job.cause.exit_code:
                        fault = await first_fault(backend, job)
    except TimeoutError as error:
        if patience.is_lost:
            raise JobStuckError(
                f"TrainJob {name} will not become {named(wanted)} by itself: {where(job)}. Mend that and submit it "
                "again; give_up_after=None waits all the same"
            ) from error
        raise JobTimeoutError(
            f"TrainJob {name} is not {named(wanted)} after {timeout_seconds:g} s: {where(job)}"
        ) from error
    raise JobDeletedError(name)


class Patience:
    """How long a wait goes on: to its timeout, less if the job is stuck."""

    def __init__(self, now: Callable[[], float], timeout_seconds: float, stuck_seconds: float | None) -> None:
        self._now = now
        self.end = self._now() + timeout_seconds
        self._stuck_seconds = stuck_seconds
        self._stuck: float | None = None
        """When it will have been stuck for too long."""

    def until(self, job: TrainJob) -> float:
        """Return when the wait is over, given how the job is now."""
        if self._stuck_seconds is None or not is_stuck(job):
            self._stuck = None
        elif self._stuck is None:
            self._stuck = self._now() + self._stuck_seconds
        return self.end if self._stuck is None else min(self.end, self._stuck)

    @property
    def is_lost(self) -> bool:
        """Whether the job was stuck for too long."""
        return self._stuck is not None and self._stuck <= self.end


def is_stuck(job: TrainJob) -> bool:
    """Return whether a TrainJob waits for what will not come by itself."""
    if job.status in FINISHED or job.cause is None:
        return False
    cause = job.cause
    return cause.reason in HOPELESS or (cause.reason in PULLING and bool(_NO_IMAGE.search(cause.message)))


def check_wanted(wanted: Collection[str], timeout_seconds: float) -> None:
    """Refuse what can never be waited for."""
    unknown = sorted(set(wanted) - set(STATUSES))
    if unknown or not wanted:
        raise InvalidError(f"status must be among {named(STATUSES)}, and is {named(unknown) or 'empty'}")
    if timeout_seconds <= 0:
        raise InvalidError(f"timeout must be more than 0 seconds, and is {timeout_seconds:g}")


def settled(status: str, wanted: Collection[str]) -> bool:
    """Return whether the wait is over: it is there, or it passed by on the way."""
    if status in wanted:
        return True
    passed = {CREATED} if status != FAILED else set()
    if status == COMPLETE:
        passed.add(RUNNING)
    return bool(passed & set(wanted))


async def first_fault(backend: Backend, job: TrainJob, seen: Cause | None = None) -> Cause:
    """Return why the TrainJob failed, with the last lines of the step that failed first.

    `seen` is what was wrong before it failed: a Job that gives up after some restarts removes the pods that could tell.
    """
    cause = await _explained(backend, job) or job.cause
    cause = cause or Cause("Failed", "nothing says why; see get_job_events and get_job_logs")
    if cause.step is None and seen is not None:
        return replace(seen, message=f"{seen.message.rstrip('. ')}. In the end: {cause.message}")
    if cause.step is None or cause.log_tail:
        return cause
    try:
        async with aclosing(backend.read_logs(job.name, [cause.step], follow=False, tail=SEARCHED_LINES)) as lines:
            tail = [line.text async for line in lines]
    except TrainplaneError:
        return cause
    return replace(cause, log_tail=find_telling(tail, TAIL_LINES))


async def _explained(backend: Backend, job: TrainJob) -> Cause | None:
    """Return why a TrainJob failed by all that is known of it, logs of all steps too; None if that says nothing.

    Nodes that lost a peer may be the first to end: while others are still about to, they are given some time.
    """
    for look in range(SETTLING_LOOKS):
        try:
            facts = await backend.collect(job.name)
        except TrainplaneError:
            return None
        told = explain(facts, datetime.now(UTC))
        clear = class_of(told.cause).part == "cause" or all(phase_of(pod) in ENDED for pod in facts.pods)
        if clear or look == SETTLING_LOOKS - 1:
            return cause_of(told) if told.step else None
        await asyncio.sleep(1)
    return None


def where(job: TrainJob | None) -> str:
    """Return in a sentence where a TrainJob stands."""
    if job is None:
        return "nothing was heard of it; is the cluster reachable?"
    if job.cause:
        return f"it is {job.status} ({job.cause})"
    if not job.steps:
        return f"it is {job.status}, with no pods yet"
    steps = ", ".join(f"{step.name} {step.reason or step.status}" for step in job.steps)
    return f"it is {job.status}: {steps}"


async def say_why_silent(backend: Backend, name: str) -> None:
    """Log why there are no lines of a TrainJob that is not over: an empty list says nothing."""
    with suppress(NotFoundError):
        job = await backend.get_job(name)
        if job.status not in FINISHED:
            _log.warning("TrainJob %s has printed nothing yet: %s", name, where(job))


def named(statuses: Collection[str]) -> str:
    """Join statuses as a sentence does."""
    return " or ".join(statuses)
