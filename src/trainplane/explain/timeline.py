"""The timeline of a TrainJob as its facts tell it: what its status keeps, and what pods, Workload and events add.

The operator writes a timeline when it writes anyway, so what happened since may be missing in it; and another operator
writes none. What is kept counts before what is read now, for pods come and go. A worker's status is a worker's word:
it is read entry by entry, cleaned and bounded.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.moments import read_moment
from trainplane.api.trainjob import Milestone
from trainplane.explain.cleaning import clean
from trainplane.explain.faults import kept_fault
from trainplane.explain.places import is_training
from trainplane.explain.pods import attempt_of, index_of, newest, phase_of
from trainplane.explain.standing import is_dispatched
from trainplane.lifecycle.conditions import conditions_of, finish
from trainplane.lifecycle.timeline import (
    ADMITTED,
    AGAIN,
    ENDS,
    FAILED,
    FIRST_STEP,
    MOST_REASON,
    NEVER,
    ONCE,
    PULLED,
    QUEUED,
    RESTARTED,
    SUCCEEDED,
    Attempt,
    PodTimes,
    fault_reason,
    merge,
    milestone,
    reached,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from trainplane.api.trainjob import FirstFault
    from trainplane.api.tree import Tree
    from trainplane.explain.facts import Facts

_MOST: Final = 16
"""Entries that are read of a status."""
_KNOWN: Final = frozenset({*ONCE, *AGAIN, *ENDS})
_PULL: Final = re.compile(r"in ((?:\d{1,4}m)?\d{1,4}(?:\.\d{1,9})?m?s)\b")
_PREPARING: Final = frozenset({names.JOB_DATASET, names.JOB_MODEL})
_STARTS: Final = frozenset({ADMITTED, "Resumed", RESTARTED})
"""With what a start begins."""


def timeline_of(facts: Facts, first_step: datetime | None = None) -> list[Milestone]:
    """Return when a TrainJob reached each stage; `first_step` is its first kept point of progress, if it has any."""
    kept = kept_timeline(facts.job)
    fault = kept_fault(facts.job) or kept_fault(facts.view)
    if is_dispatched(facts.job):  # it was queued on the hub; the rest is its worker's to tell
        kept = merge([*kept, *_queue(facts)], kept_timeline(facts.view))
    told = merge(kept, [*_queue(facts), *_pods(facts), *milestone(FIRST_STEP, first_step), *_end(facts.job, fault)])
    return [_with_pull(one, facts) for one in told]


def kept_timeline(job: Tree | None) -> list[Milestone]:
    """Return the timeline that a status keeps, each entry cleaned; what is none is left out."""
    return merge([one for entry in trees.entries(job, "status", "timeline")[:_MOST] if (one := _read(entry))], ())


def last_start(timeline: Sequence[Milestone], job: Tree) -> datetime | None:
    """Return when a TrainJob last began to start: what it waited for in a queue is no slow start."""
    return max((one.time for one in timeline if one.stage in _STARTS), default=_made(job))


class Reached(Protocol):
    """Something that was reached at a time."""

    @property
    def time(self) -> datetime:
        """When."""


R = TypeVar("R", bound=Reached)


def spans(timeline: Sequence[R], job: Tree) -> list[tuple[R, timedelta]]:
    """Return each stage with how long it took since the one before, from the TrainJob's creation on."""
    before = _made(job)
    found = []
    for one in timeline:
        since = one.time if before is None else before
        found.append((one, max(one.time - since, timedelta(0))))
        before = max(one.time, since)
    return found


def _read(entry: Any) -> Milestone | None:
    try:
        found = msgspec.convert(entry, Milestone)
    except msgspec.ValidationError:
        return None
    if found.stage not in _KNOWN or not 0 <= found.number < 2**31:
        return None
    return next(milestone(found.stage, found.time, clean(found.reason, MOST_REASON), found.number), None)


def _queue(facts: Facts) -> Iterator[Milestone]:
    queue = trees.text(facts.job, "metadata", "labels", names.LABEL_QUEUE)
    if not queue:
        return
    yield from milestone(QUEUED, _made(facts.job), clean(f"queue {queue}", MOST_REASON))
    admitted = trees.fields(facts.workload, "status", "conditions", ("type", "Admitted"))
    if admitted.get("status") == "True":
        yield from milestone(ADMITTED, read_moment(admitted.get("lastTransitionTime")))


def read_attempt(pods: Sequence[Tree], wanted: int = 0) -> Attempt:
    """Return the pods of the last attempt, `wanted` of which train, as a timeline looks at them."""
    last = max(map(attempt_of, pods), default=0)
    present = {place: pod for place, pod in newest(pods).items() if attempt_of(pod) == last}
    again = any(trees.number(one, "restartCount") for pod in present.values() for one in _containers(pod))
    return Attempt(
        trainers=[_times(pod) for place, pod in present.items() if is_training(place)],
        initializers=[_times(pod) for place, pod in present.items() if place.replicated_job in _PREPARING],
        wanted=wanted,
        restarts=last,
        again=again or sum(attempt_of(pod) == last and index_of(pod) is not None for pod in pods) > len(present),
    )


def _pods(facts: Facts) -> Iterator[Milestone]:
    attempt = read_attempt(facts.pods, _wanted(facts.job))
    yield from reached(attempt)
    if attempt.restarts:
        begun = read_moment(min((pod.created for pod in attempt.trainers), default=""))
        yield from milestone(RESTARTED, begun, number=attempt.restarts)


def _containers(pod: Tree) -> list[Tree]:
    return trees.entries(pod, "status", "containerStatuses")


def _times(pod: Tree) -> PodTimes:
    """Return when a pod got on, as `operator.pods` does of what it mirrors."""
    statuses = _containers(pod)
    started = [_started(one) for one in statuses]
    broke = any(
        trees.number(one, state, "terminated", "exitCode") for one in statuses for state in ("state", "lastState")
    )
    ends = [trees.text(one, "state", "terminated", "finishedAt") or "" for one in statuses]
    return PodTimes(
        created=trees.text(pod, "metadata", "creationTimestamp") or "",
        scheduled=_since(pod, "PodScheduled"),
        started=max(started, default=""),
        ready=_since(pod, "Ready") or (max(started) if broke and not _is_probed(pod) else ""),
        done=max(ends, default="") if phase_of(pod) == "Succeeded" else "",
        waits=not all(started),
    )


def _is_probed(pod: Tree) -> bool:
    """Return whether more than the start of its containers makes a pod ready."""
    asked = [one.get("readinessProbe") or one.get("startupProbe") for one in trees.entries(pod, "spec", "containers")]
    return any(asked) or bool(trees.entries(pod, "spec", "readinessGates"))


def _started(status: Tree) -> str:
    paths = (("state", "running"), ("state", "terminated"), ("lastState", "terminated"))
    times = (trees.text(status, *path, "startedAt") for path in paths)
    return next((since for since in times if since and since != NEVER), "")


def _since(pod: Tree, kind: str) -> str:
    condition = trees.fields(pod, "status", "conditions", ("type", kind))
    return (trees.text(condition, "lastTransitionTime") or "") if condition.get("status") == "True" else ""


def _wanted(job: Tree) -> int:
    """Return how many pods train, as far as the TrainJob says."""
    total = (trees.text(job, "status", "nodesReady") or "").partition("/")[2]
    if total.isdecimal() and len(total) < 9:
        return int(total)
    return trees.number(job, "spec", "trainer", "numNodes") or 0


def _end(job: Tree, fault: FirstFault | None) -> Iterator[Milestone]:
    end = finish(conditions_of(job))
    if end is None:
        return
    failed = end["type"] == names.FAILED
    reason = fault_reason(fault) or clean(end.get("reason"), MOST_REASON) if failed else ""
    yield from milestone(FAILED if failed else SUCCEEDED, read_moment(end.get("lastTransitionTime")), reason)


def _with_pull(one: Milestone, facts: Facts) -> Milestone:
    """Return the stage of images with how long the slowest took, as far as kubelets still tell."""
    if one.stage != PULLED or one.reason:
        return one
    pods = {trees.text(pod, "metadata", "name") for pod in facts.pods if index_of(pod)}
    told = [
        found[1]
        for event in facts.events
        if event.get("reason") == "Pulled" and trees.get(event, "involvedObject", "name") in pods
        if (found := _PULL.search(clean(event.get("message"))))
    ]
    slowest = max(told, key=_seconds, default="")
    return msgspec.structs.replace(one, reason=f"the slowest image took {slowest}") if slowest else one


def _seconds(span: str) -> float:
    """Return a span such as `1m2.5s` or `350ms` in seconds."""
    if span.endswith("ms"):
        return float(span[:-2]) / 1000
    minutes, _, seconds = span.rstrip("s").rpartition("m")
    return float(minutes or 0) * 60 + float(seconds)


def _made(job: Tree) -> datetime | None:
    return read_moment(trees.get(job, "metadata", "creationTimestamp"))
