"""What an older job says of its run as a whole, field by field: what each becomes in a TrainJob and its runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.legacy import names as old

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainplane.api.tree import Tree
    from trainplane.legacy.migrate.draft import Draft

VOLCANO: Final = "volcano"
COSCHEDULING: Final = "coscheduling"
_AT: Final = "spec.runPolicy"
_GANG: Final = f"{_AT}.schedulingPolicy"
_CLEANING: Final = {
    old.CLEAN_RUNNING: "",
    old.CLEAN_NONE: "pods that still run when the training is over are stopped; those that ended stay, with their logs",
    old.CLEAN_ALL: "pods that ended stay until the TrainJob is deleted, with their logs; "
    "set ttlSecondsAfterFinished in the runtime's template to have them go by themselves",
}


def take_run_policy(policy: Tree, draft: Draft, *, gang: str, pods: int) -> None:
    """Carry over runPolicy; `gang` is the scheduler that the old operator was told to use, `pods` how many there are.

    How often pods may fail belongs to how they start again (`roles`).
    """
    for name, value in sorted(policy.items()):
        if name != "schedulingPolicy":
            FIELDS[name](value, draft)
    scheduling = trees.fields(policy, "schedulingPolicy")
    if scheduling:
        _take_scheduling(scheduling, draft, gang, pods)


def _suspend(value: Any, draft: Draft) -> None:
    draft.spec["suspend"] = value
    draft.put(f"{_AT}.suspend")


def _managed_by(value: Any, draft: Draft) -> None:
    if value == draft.kind.managed_by:
        draft.put(f"{_AT}.managedBy", f"{names.MANAGED_BY_TRAINER} is a TrainJob's default")
    else:
        draft.spec["managedBy"] = value
        draft.put(f"{_AT}.managedBy")


def _clean_pod_policy(value: Any, draft: Draft) -> None:
    """Say what becomes of pods when the training is over. JobSet does what Running says."""
    text = _CLEANING[value or old.CLEAN_NONE]
    draft.note(f"{_AT}.cleanPodPolicy", "changed" if text else "carried", text)


def _ttl(value: Any, draft: Draft) -> None:
    draft.jobset["ttlSecondsAfterFinished"] = value
    draft.own = True
    text = "in the TrainingRuntime: the JobSet and its pods go then, and the TrainJob stays, to tell how it ended"
    draft.note(f"{_AT}.ttlSecondsAfterFinished", "changed", text)


def _deadline(value: Any, draft: Draft) -> None:
    draft.spec["activeDeadlineSeconds"] = value
    draft.put(f"{_AT}.activeDeadlineSeconds")


def _backoff(value: Any, draft: Draft) -> None:
    del value
    also = ", and as runPolicy.failurePolicy.maxRestarts for restarts of all pods" if draft.max_restarts else ""
    draft.needs_runtime(f"{_AT}.backoffLimit", f"in the TrainingRuntime, for the pods of each of its jobs{also}")


FIELDS: Final[Mapping[str, Callable[[Any, Draft], None]]] = {
    "suspend": _suspend,
    "managedBy": _managed_by,
    "cleanPodPolicy": _clean_pod_policy,
    "ttlSecondsAfterFinished": _ttl,
    "activeDeadlineSeconds": _deadline,
    "backoffLimit": _backoff,
}
"""Every field of runPolicy but schedulingPolicy, of which one field decides about the others."""


def _take_scheduling(policy: Tree, draft: Draft, gang: str, pods: int) -> None:
    _take_priority(policy.get("priorityClass"), draft)
    rest = {key: value for key, value in policy.items() if key != "priorityClass"}
    if not gang:
        for key in sorted(rest):
            text = (
                "nothing in the job says who schedules its pods together: say --gang-scheduler volcano or coscheduling "
                "if the old operator was told so; a queue of Kueue's starts all pods or none anyway"
            )
            draft.note(f"{_GANG}.{key}", "left out", text)
        return
    draft.own = True
    draft.gang = {gang: {}}
    for key, value in sorted(rest.items()):
        _take_gang(key, value, draft, gang, pods)


def _take_priority(value: Any, draft: Draft) -> None:
    if not value:
        return
    for job in draft.jobs:
        pod = job["template"]["spec"]["template"]["spec"]
        pod.setdefault("priorityClassName", value)
    draft.own = True
    text = "as priorityClassName of the pods, by which Kueue and Volcano order jobs of this kind"
    draft.note(f"{_GANG}.priorityClass", "changed", text, alters={"priorityClassName"})


def _take_gang(key: str, value: Any, draft: Draft, gang: str, pods: int) -> None:
    place = f"{_GANG}.{key}"
    if key == "minAvailable" and value == pods:
        draft.put(place, "all pods or none")
    elif key == "minAvailable":
        draft.note(place, "changed", f"the group waits for all its pods and not for {value}")
    elif key == "minResources":
        draft.note(place, "left out", "it is what the pods request together, and counted so")
    elif key == "queue" and gang == VOLCANO:
        draft.template = {"annotations": {names.ANNOTATION_VOLCANO_QUEUE: value}}
        draft.put(place, "as an annotation of the runtime's template")
    elif key == "scheduleTimeoutSeconds" and gang == COSCHEDULING:
        draft.gang[gang]["scheduleTimeoutSeconds"] = value
        draft.put(place, "in the runtime's podGroupPolicy")
    else:
        draft.note(place, "left out", f"{gang} has no such setting")
