"""The timeline of a TrainJob: when it reached each stage of its life, and what made it begin again. Pure.

    Queued        it was submitted to a queue of Kueue's
    Admitted      its queue let it go
    Initialized   the initializers are done
    Scheduled     every pod of the training has a node
    Pulled        every container of theirs was started, for which its image had to be there
    Running       every pod of the training is ready, or was
    FirstStep     it reported progress for the first time
    Restarted     all pods began anew
    PodRestarted  some did
    Suspended, Resumed  by its queue or its user
    Succeeded, Failed

A stage is told once, by the time that whoever made it true wrote down: the scheduler, a kubelet, Kueue. What happens
again is numbered, and the newest are kept, so the number tells of those before. A timeline has sixteen entries at most
and is in the order of life, for clocks of nodes differ.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api.meta import find, whole_seconds
from trainplane.api.moments import read_moment
from trainplane.api.trainjob import Milestone
from trainplane.lifecycle.conditions import finish

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from trainplane.api.trainjob import FirstFault, TrainJob, TrainJobStatus

QUEUED: Final = "Queued"
ADMITTED: Final = "Admitted"
INITIALIZED: Final = "Initialized"
SCHEDULED: Final = "Scheduled"
PULLED: Final = "Pulled"
RUNNING: Final = "Running"
FIRST_STEP: Final = "FirstStep"
RESTARTED: Final = "Restarted"
POD_RESTARTED: Final = "PodRestarted"
SUSPENDED: Final = "Suspended"
RESUMED: Final = "Resumed"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"

ONCE: Final = (QUEUED, ADMITTED, INITIALIZED, SCHEDULED, PULLED, RUNNING, FIRST_STEP)
"""Stages that are told of the first time alone, in the order of life."""
AGAIN: Final = (SUSPENDED, RESUMED, RESTARTED, POD_RESTARTED)
ENDS: Final = (SUCCEEDED, FAILED)
MOST_AGAIN: Final = 8
"""Entries of what happens again."""
NEVER: Final = "1970-01-01T00:00:00Z"
"""The time that a kubelet writes for the start of a container that it could not start."""
MOST_REASON: Final = 128
"""Letters of a reason."""


@dataclass(frozen=True, slots=True)
class PodTimes:
    """When a pod got on, as the API server writes times; empty for what has not happened."""

    created: str = ""
    scheduled: str = ""
    started: str = ""
    """When its last container was first started."""
    ready: str = ""
    """When it became ready; of one that broke and had no probe to answer, when its containers had started."""
    done: str = ""
    """When it had done its work."""
    waits: bool = False
    """Whether a container of it has not been started yet."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The pods of a TrainJob's present attempt, as a timeline looks at them."""

    trainers: Sequence[PodTimes] = ()
    initializers: Sequence[PodTimes] = ()
    wanted: int = 0
    """Pods of the training; 0 if that is not known."""
    restarts: int = 0
    """How often all pods began anew before it."""
    again: bool = False
    """Whether a container was started again, or a pod took another's place."""


def extend(
    kept: Sequence[Milestone], job: TrainJob, status: TrainJobStatus, attempt: Attempt, now: datetime
) -> list[Milestone]:
    """Return a timeline with what is true now of a TrainJob whose status is as given, and was not in it yet."""
    found = [*_holds(kept, job, status, now), *_pods(kept, status, attempt, now), *_end(status, now)]
    return merge(kept, found) if found and not {_key(one) for one in kept}.issuperset(map(_key, found)) else list(kept)


def merge(kept: Iterable[Milestone], found: Iterable[Milestone]) -> list[Milestone]:
    """Return two timelines as one, in order and in bounds; of what both tell, the first counts."""
    told: dict[tuple[str, int], Milestone] = {}
    for one in (*kept, *found):
        told.setdefault(_key(one), one)
    return _in_order(told.values())


def lacks(kept: Sequence[Milestone], restarts: int) -> bool:
    """Return whether pods may have more to tell: once they run, and for each new attempt once, they have told all."""
    if not stage_names(kept).issuperset({SCHEDULED, PULLED, RUNNING}):
        return True
    return restarts > 0 and all((one.stage, one.number) != (RESTARTED, restarts) for one in kept)


def stage_names(timeline: Iterable[Milestone]) -> frozenset[str]:
    """Return the stages that a timeline tells of."""
    return frozenset(one.stage for one in timeline)


def milestone(stage: str, time: datetime | None, reason: str = "", number: int = 0) -> Iterator[Milestone]:
    """Yield a stage, if it is known when it was reached; a time at the end of all times is none."""
    if time is not None:
        with contextlib.suppress(OverflowError):
            yield Milestone(stage=stage, time=whole_seconds(time), reason=reason, number=number)


def reached(attempt: Attempt) -> Iterator[Milestone]:
    """Yield the stages that the pods of an attempt have reached together."""
    done = [pod.done for pod in attempt.initializers]
    if done and all(done):
        yield from milestone(INITIALIZED, _last(done))
    pods = attempt.trainers
    if not pods or len(pods) < attempt.wanted:
        return
    count = f"{len(pods)} pod{'s' * (len(pods) != 1)}"
    if all(pod.scheduled for pod in pods):
        yield from milestone(SCHEDULED, _last(pod.scheduled for pod in pods), count)
    if all(pod.started and not pod.waits for pod in pods):
        yield from milestone(PULLED, _last(pod.started for pod in pods))
    if all(pod.ready or pod.done for pod in pods):
        yield from milestone(RUNNING, _last(pod.ready or pod.started or pod.done for pod in pods))


def fault_reason(fault: FirstFault | None) -> str:
    """Return a fault in a few words."""
    if fault is None:
        return ""
    return f"{fault.cause} in {fault.step} {fault.index}"[:MOST_REASON] if fault.step else fault.cause


def _holds(kept: Sequence[Milestone], job: TrainJob, status: TrainJobStatus, now: datetime) -> Iterator[Milestone]:
    """Yield how a TrainJob was held back, and let go."""
    known = stage_names(kept)
    queue = job.metadata.labels.get(names.LABEL_QUEUE, "")
    held = find(status.conditions, names.SUSPENDED)
    since = (held.last_transition_time if held is not None else None) or now
    stops = [one for one in kept if one.stage in {SUSPENDED, RESUMED}]
    is_held = bool(job.spec.suspend)
    if queue and QUEUED not in known:
        yield from milestone(QUEUED, job.metadata.creation_timestamp, f"queue {queue}"[:MOST_REASON])
    if queue and ADMITTED not in known:
        if not is_held and finish(status.conditions) is None:
            yield from milestone(ADMITTED, since if held is not None else _begun(job, now))
        return
    last = stops[-1] if stops else None
    number = last.number if last is not None else 0
    if is_held and (last is None or last.stage == RESUMED) and finish(status.conditions) is None:
        yield from milestone(SUSPENDED, since, "by its queue" if queue else "by spec.suspend", number + 1)
    if not is_held and last is not None and last.stage == SUSPENDED:
        yield from milestone(RESUMED, since, number=number)


def _begun(job: TrainJob, now: datetime) -> datetime:
    """Return when a TrainJob was let go that was never seen to be held."""
    return job.metadata.creation_timestamp or now


def _pods(kept: Sequence[Milestone], status: TrainJobStatus, attempt: Attempt, now: datetime) -> Iterator[Milestone]:
    yield from reached(attempt)
    again = {(one.stage, one.number) for one in kept}
    fault = status.first_fault
    if attempt.restarts and (RESTARTED, attempt.restarts) not in again:
        begun = read_moment(min((pod.created for pod in attempt.trainers if pod.created), default=""))
        before = fault if fault is not None and fault.restart < attempt.restarts else None
        yield from milestone(RESTARTED, begun or now, fault_reason(before), attempt.restarts)
    mark = attempt.restarts + 1
    if attempt.again and (POD_RESTARTED, mark) not in again:
        present = fault if fault is not None and fault.restart == attempt.restarts else None
        yield from milestone(POD_RESTARTED, now, fault_reason(present), mark)


def _end(status: TrainJobStatus, now: datetime) -> Iterator[Milestone]:
    end = finish(status.conditions)
    if end is None:
        return
    failed = end.type == names.FAILED
    reason = (fault_reason(status.first_fault) or end.reason) if failed else ""
    yield from milestone(FAILED if failed else SUCCEEDED, end.last_transition_time or now, reason[:MOST_REASON])


def _key(one: Milestone) -> tuple[str, int]:
    """Return what is told once: the end, a stage, or a stage with its number."""
    if one.stage in ENDS:
        return "", 0
    return one.stage, one.number if one.stage in AGAIN else 0


def _last(times: Iterable[str]) -> datetime | None:
    """Return the latest of times that one kind of clock wrote: as texts, they are in the order of time."""
    return read_moment(max(times))


def _in_order(told: Iterable[Milestone]) -> list[Milestone]:
    """Return entries in the order of life: by time, but no stage before the one that comes before it."""
    entries = list(told)
    once = sorted((one for one in entries if one.stage in ONCE), key=lambda one: ONCE.index(one.stage))
    again = sorted((one for one in entries if one.stage in AGAIN), key=lambda one: one.time)[-MOST_AGAIN:]
    shown: list[tuple[datetime, int, Milestone]] = []
    for place, one in enumerate(once):
        shown.append((max(one.time, shown[-1][0]) if shown else one.time, place, one))
    shown += [(one.time, len(ONCE) + place, one) for place, one in enumerate(again)]
    ordered = [one for _, _, one in sorted(shown, key=lambda entry: entry[:2])]
    return [*ordered, *(one for one in entries if one.stage in ENDS)]
