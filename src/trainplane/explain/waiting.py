"""Why a TrainJob that is not over does not get on: pods that ended and are to be started again, pods that wait."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.explain.catalogue import class_of
from trainplane.explain.cleaning import clean
from trainplane.explain.creation import class_by_words, explain_creation
from trainplane.explain.faults import fault_of, first, is_sure
from trainplane.explain.phrasing import of_class, of_fault, where_of
from trainplane.explain.pods import attempt_of, is_given_up, name_of, phase_of, wait_of
from trainplane.explain.room import name_excess

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.explain.explanation import Explanation
    from trainplane.explain.facts import Facts
    from trainplane.explain.pods import Trouble

_BY_REASON: Final = {
    "SchedulingGated": "SchedulingGated",
    "Unschedulable": "Unschedulable",
    "ImagePullBackOff": "ImagePull",
    "ErrImagePull": "ImagePull",
    "InvalidImageName": "ImagePull",
    "ErrImageNeverPull": "ImagePull",
    "ImageInspectError": "ImagePull",
    "RegistryUnavailable": "ImagePull",
    "CreateContainerConfigError": "BadMount",
    "CreateContainerError": "BadMount",
    "RunContainerError": "WrongCommand",
    "StartError": "WrongCommand",
}
_EXPLAINED: Final = frozenset({"ImagePull", "Unschedulable", "BadMount", "WrongCommand"})
"""Classes of which the words may say something more special."""


def explain_crash(facts: Facts) -> Explanation | None:
    """Return why containers ended that now wait to be started again; None if all run."""
    attempt = max(map(attempt_of, facts.pods), default=0)
    found = []
    for step, pod in facts.steps().items():
        if attempt_of(pod) < attempt or _runs(pod):
            continue
        fault = fault_of(pod, [line.text for line in facts.logs.get(step, ())])
        if fault is not None:
            found.append((fault, step))
    chosen = first(fault for fault, _ in found)
    if chosen is None:
        return None
    step = next(step for fault, step in found if fault is chosen)
    sure = is_sure(chosen, [line.text for line in facts.logs.get(step, ())])
    explanation = of_fault(chosen, step, class_of(chosen.cause).certainty if sure else "likely", ())
    return replace(explanation, state="Starting")


def explain_wait(facts: Facts) -> Explanation | None:
    """Return what a pod waits for that will not come by itself, such as an image or room on a node."""
    waiting: dict[str, str] = {}
    for step, pod in facts.steps().items():
        trouble = wait_of(pod)
        if trouble is not None and trouble.reason != "CrashLoopBackOff":
            return _of_wait(facts, step, pod, trouble)
        if phase_of(pod) == "Pending":
            waiting[name_of(pod)] = step
    return explain_creation(facts, about=waiting) if waiting else None


def _of_wait(facts: Facts, step: str, pod: Tree, trouble: Trouble) -> Explanation:
    cause = _BY_REASON.get(trouble.reason, "CreationFailed")
    words = clean(trouble.message)
    if cause in _EXPLAINED:
        told = class_by_words(words)
        cause = told if told and told not in {"SandboxFailed", "AdmissionDenied"} else cause
    if cause == "ImagePull" and not words:
        events = explain_creation(facts, about={name_of(pod)})
        words = events.detail if events else words
    if cause == "Unschedulable" and (excess := name_excess(pod, facts.nodes)):
        words = f"{excess}: {words}"
    return of_class(
        "Starting",
        cause,
        step,
        detail=words,
        source=f"pod {clean(name_of(pod), 253)}",
        reason=clean(trouble.reason, 128),
        where=where_of(step, pod),
    )


def _runs(pod: Tree) -> bool:
    return not is_given_up(pod) and any(
        "running" in trees.fields(status, "state") for status in trees.entries(pod, "status", "containerStatuses")
    )
