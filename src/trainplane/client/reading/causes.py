"""Causes: why a TrainJob failed, is held, or does not get on. The first fault counts, not the last.

When one node of many dies, the others die of it: their peers are gone, or they are told to stop. So of all containers
that ended badly, also in pods whose place was taken, the one that ended first is the cause; of those in the same
second, one that was killed for memory, then one that ended by itself, then one that was told to stop. Where JobSet
started all over again, only the last time counts: what was wrong before was got over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.client.reading.conditions import holding, is_dispatched
from trainplane.client.reading.steps import name_places
from trainplane.client.types.jobs import Cause
from trainplane.explain.pods import (
    attempt_of,
    container_of,
    created,
    end_of,
    former_end_of,
    index_of,
    newest,
    wait_of,
)
from trainplane.lifecycle.conditions import conditions_of, finish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.api.podindex import PodIndex
    from trainplane.api.tree import Tree
    from trainplane.explain.pods import Trouble

OOM: Final = "OOMKilled"
_STOPPED: Final = frozenset({137, 143})
"""Exit codes of who is told to stop, and of who does not heed that."""
_MEANINGS: Final = {
    126: "the command is no program that can be started",
    127: "the command was not found: check its name, and that it is installed where it runs",
    132: "it ran an instruction that this machine does not have",
    134: "it aborted itself",
    135: "it ran out of shared memory or read a broken file: mount a larger /dev/shm",
    137: "it was killed",
    139: "it crashed in native code",
    143: "it was told to stop",
}
_ADVICE: Final = {
    "ImagePullBackOff": "check the image's name, and whether the cluster may pull it",
    "ErrImagePull": "check the image's name, and whether the cluster may pull it",
    "InvalidImageName": "check the image's name",
    "ErrImageNeverPull": "the image is not on the machine, and its pull policy is Never",
    "CreateContainerConfigError": "a Secret or ConfigMap that it refers to is missing",
    "CrashLoopBackOff": "it ended again and again",
    "Unschedulable": "no machine has room for it: ask for less, or wait",
    "SchedulingGated": "something holds its pods back from the scheduler",
    "Evicted": "its machine ran short of something: ask for what it needs in resources_per_node",
    "DeadlineExceeded": "allow more time with ActiveDeadlineSeconds, or train less",
}
_TELLING: Final = {
    "Pod": frozenset({"Failed", "FailedScheduling", "FailedMount", "FailedCreatePodSandBox"}),
    "Job": frozenset({"FailedCreate"}),
    "JobSet": frozenset({"FailedCreate", "JobCreationFailed"}),
    names.TRAIN_JOB: frozenset({names.EVENT_CREATION_FAILED}),
}
"""Reasons of Warning events that say why pods do not run, by what they are about."""


def find_cause(
    job: Tree, pods: Sequence[Tree], events: Sequence[Tree] = (), *, view: Tree | None = None
) -> Cause | None:
    """Return why a TrainJob failed, is held, or does not start; None if nothing is wrong with it.

    Args:
        job: the TrainJob.
        pods: its pods, also former ones.
        events: its events, for what pods that are gone cannot tell any more.
        view: the hub's view of it, if it is dispatched.
    """
    end = finish(conditions_of(job))
    if end is not None:
        return None if end["type"] == names.COMPLETE else _failure(job, end, pods, events)
    if is_held(job, view):
        return _hold(job, view)
    return _first_end(job, pods, only_waiting=True) or _first_wait(job, pods) or _telling(events)


def is_held(job: Tree, view: Tree | None = None) -> bool:
    """Return whether a TrainJob is held back, by its user or by Kueue."""
    if is_dispatched(job):
        placement = trees.get(view, "status", "placement")
        if placement is not None:
            return bool(placement == "Waiting")
        return not trees.get(job, "status", "jobsStatus") or holding(job, names.SUSPENDED) is not None
    return bool(trees.get(job, "spec", "suspend")) or holding(job, names.SUSPENDED) is not None


def _hold(job: Tree, view: Tree | None) -> Cause:
    queue = trees.get(job, "metadata", "labels", names.LABEL_QUEUE)
    if queue is None and not view:
        return Cause("Suspended", "it is held by spec.suspend: resume it when it may run")
    why = trees.get(view, "status", "reason")
    return Cause("Queued", str(why) if why else f"it waits for quota in queue {queue}")


def _failure(job: Tree, failed: Tree, pods: Sequence[Tree], events: Sequence[Tree]) -> Cause:
    reason, message = str(failed.get("reason") or names.FAILED), str(failed.get("message") or "")
    if reason == names.REASON_RUNTIME_NOT_SUPPORTED:
        return Cause(reason, message)
    if reason == names.REASON_DEADLINE_EXCEEDED:
        before = _first_wait(job, pods) or _telling(events)
        detail = f" (before that, {before})" if before else ""
        return Cause(reason, _with_advice(reason, message) + detail)
    return _first_end(job, pods) or _telling(events) or Cause(reason, message)


def _first_end(job: Tree, pods: Sequence[Tree], *, only_waiting: bool = False) -> Cause | None:
    """Return the first bad end; with `only_waiting`, only of pods whose container does not run again."""
    called = name_places(pods, job)
    attempt = max(map(attempt_of, pods), default=0)
    found: list[tuple[Trouble, PodIndex, Tree]] = []
    for pod in newest(pods).values() if only_waiting else pods:
        place = index_of(pod)
        if place is None or attempt_of(pod) < attempt or (only_waiting and _runs(pod)):
            continue
        end = end_of(pod) or former_end_of(pod)
        if end:
            found.append((end, place, pod))
    if not found:
        return None
    end, place, pod = min(found, key=lambda entry: _order(entry[0], entry[1], entry[2]))
    return _cause(end, called[place], pod)


def _order(end: Trouble, place: PodIndex, pod: Tree) -> tuple[object, ...]:
    moment = end.moment or created(pod)
    rank = 0 if end.reason == OOM else 2 if end.exit_code in _STOPPED else 1
    return moment.replace(microsecond=0), rank, moment, place


def _runs(pod: Tree) -> bool:
    return any(
        "running" in trees.fields(status, "state") for status in trees.entries(pod, "status", "containerStatuses")
    )


def _first_wait(job: Tree, pods: Sequence[Tree]) -> Cause | None:
    called = name_places(pods, job)
    for place, pod in newest(pods).items():
        trouble = wait_of(pod)
        if trouble:
            return _cause(trouble, called[place], pod)
    return None


def _cause(trouble: Trouble, step: str, pod: Tree) -> Cause:
    return Cause(trouble.reason, _message(trouble, pod), step, trouble.exit_code)


def _message(trouble: Trouble, pod: Tree) -> str:
    if trouble.reason == OOM:
        limit = trees.get(container_of(pod), "resources", "limits", "memory")
        has = f"its limit of {limit} memory" if limit else "the memory there is"
        return f"it used more than {has}: give it more in resources_per_node, or let it use less"
    if trouble.message:
        return _with_advice(trouble.reason, trouble.message.strip())
    meaning = _MEANINGS.get(trouble.exit_code or 0)
    if meaning and trouble.reason == "Error":
        return meaning
    return _ADVICE.get(trouble.reason) or "it ended with an error: see its log"


def _with_advice(reason: str, message: str) -> str:
    advice = _ADVICE.get(reason)
    return f"{message.rstrip('. ')}: {advice}" if advice and advice not in message else message


def _telling(events: Sequence[Tree]) -> Cause | None:
    """Return what the first Warning says that tells why pods are not there or did not run."""
    for event in events:
        kind, reason = trees.text(event, "involvedObject", "kind") or "", trees.text(event, "reason")
        if event.get("type") == "Warning" and reason in _TELLING.get(kind, ()):
            name = trees.text(event, "involvedObject", "name")
            return Cause(str(reason), f"{kind} {name}: {trees.text(event, 'message')}")
    return None
