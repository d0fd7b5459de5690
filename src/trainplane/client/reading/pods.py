"""One pod: which place of its TrainJob it takes, which container does the work, and how that is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.client.reading.moments import BEGINNING, read_moment

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from trainplane.api.tree import Tree

_DIGITS: Final = 9
"""Of the largest index or count that is one."""
STARTED: Final = frozenset({"Running", "Succeeded"})
"""Phases of a pod whose containers were all started."""
ENDED: Final = frozenset({"Succeeded", "Failed"})


class Place(NamedTuple):
    """What a pod is within its TrainJob; a pod that takes another's place has the same."""

    role: str
    """The replicated job: `node`, `launcher`, `dataset-initializer`, ..."""
    job: int
    """The number of the Job within the replicated job."""
    pod: int
    """The number of the pod within the Job."""


def place_of(pod: Tree) -> Place | None:
    """Return a pod's place; None if it is no pod of a JobSet."""
    role = trees.get(pod, "metadata", "labels", names.LABEL_REPLICATED_JOB)
    if not isinstance(role, str):
        return None
    labels = trees.fields(pod, "metadata", "labels")
    annotations = trees.fields(pod, "metadata", "annotations")
    index = annotations.get(names.ANNOTATION_COMPLETION_INDEX) or labels.get(names.ANNOTATION_COMPLETION_INDEX)
    return Place(role, as_number(labels.get(names.LABEL_JOB_INDEX)), as_number(index))


def as_number(value: Any) -> int:
    """Return the number that a label or variable writes as text; 0 for what is none."""
    text = str(value or 0)
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else 0


def attempt_of(pod: Tree) -> int:
    """Return how often the whole JobSet had been started again when a pod was made."""
    return as_number(trees.get(pod, "metadata", "labels", names.LABEL_RESTART_ATTEMPT))


def name_of(pod: Tree) -> str:
    """Return a pod's name."""
    return str(trees.get(pod, "metadata", "name") or "")


def job_of(pod: Tree) -> str | None:
    """Return the name of a pod's TrainJob, which is its JobSet's."""
    name = trees.get(pod, "metadata", "labels", names.LABEL_JOBSET_NAME)
    return name if isinstance(name, str) else None


def cluster_of(document: Tree) -> str | None:
    """Return the worker cluster that a pod or event is from; None for the cluster that was asked."""
    return worker(trees.get(document, "metadata", "annotations", names.ANNOTATION_CLUSTER))


def worker(cluster: Any) -> str | None:
    """Return the worker that the hub's view names; None for the hub itself, and where it names none."""
    return cluster if isinstance(cluster, str) and cluster not in {"", names.CLUSTER_HUB} else None


def created(pod: Tree) -> datetime:
    """Return when a pod was created."""
    return read_moment(trees.get(pod, "metadata", "creationTimestamp")) or BEGINNING


def phase_of(pod: Tree) -> str | None:
    """Return a pod's phase."""
    phase = trees.get(pod, "status", "phase")
    return str(phase) if phase else None


def newest(pods: Iterable[Tree]) -> dict[Place, Tree]:
    """Return the pod that has each place now: the one made last, of two of the same second the one that still lives."""
    found: dict[Place, Tree] = {}
    for pod in sorted(pods, key=lambda pod: (created(pod), phase_of(pod) not in ENDED, name_of(pod))):
        place = place_of(pod)
        if place is not None:
            found[place] = pod
    return dict(sorted(found.items()))


def container_of(pod: Tree) -> Tree | None:
    """Return the container of a pod that does its work: `node`, else the one named as the role, else the first."""
    containers = trees.entries(pod, "spec", "containers")
    place = place_of(pod)
    wanted = [names.CONTAINER_NODE, *([place.role] if place else [])]
    for name in wanted:
        for container in containers:
            if container.get("name") == name:
                return container
    return containers[0] if containers else None


def container_name(pod: Tree) -> str:
    """Return that container's name."""
    return str((container_of(pod) or {}).get("name") or names.CONTAINER_NODE)


def container_status(pod: Tree, name: str | None = None) -> Tree:
    """Return the status of a container, of the one that does the work if none is named; empty before there is one."""
    name = name or container_name(pod)
    for group in ("containerStatuses", "initContainerStatuses"):
        found = trees.get(pod, "status", group, ("name", name))
        if isinstance(found, dict):
            return found
    return {}


def variable(pod: Tree, name: str) -> str | None:
    """Return a variable of the container that does the work, where its value stands in the pod."""
    value = trees.get(container_of(pod), "env", ("name", name), "value")
    return value if isinstance(value, str) else None


class Trouble(NamedTuple):
    """Why a pod does not run, or how it ended badly."""

    reason: str
    message: str | None
    exit_code: int | None = None
    moment: datetime | None = None
    """When it ended."""
    container: str | None = None


def trouble_of(pod: Tree) -> Trouble | None:
    """Return what is wrong with a pod at present; None if nothing is, or if all that can be said is that it waits."""
    return end_of(pod) or wait_of(pod)


def end_of(pod: Tree) -> Trouble | None:
    """Return how a pod, or the present run of one of its containers, ended, if badly."""
    found = [end for status in _statuses(pod) if (end := _end(status, "state"))]
    if found:
        return min(found, key=lambda end: end.moment or BEGINNING)
    return _pod_end(pod)


def former_end_of(pod: Tree) -> Trouble | None:
    """Return how the run before of a pod's containers ended, if badly."""
    found = [end for status in _statuses(pod) if (end := _end(status, "lastState"))]
    return min(found, key=lambda end: end.moment or BEGINNING, default=None)


def wait_of(pod: Tree) -> Trouble | None:
    """Return what a pod waits for that will not come by itself, such as an image or room on a machine."""
    if phase_of(pod) in ENDED:
        return None
    scheduled = trees.fields(pod, "status", "conditions", ("type", "PodScheduled"))
    if scheduled.get("status") == "False":
        return Trouble(trees.text(scheduled, "reason") or "Unschedulable", trees.text(scheduled, "message"))
    for status in _statuses(pod):
        reason = trees.text(status, "state", "waiting", "reason")
        if reason not in {None, "ContainerCreating", "PodInitializing"}:
            message = trees.text(status, "state", "waiting", "message")
            return Trouble(str(reason), message, container=trees.text(status, "name"))
    return None


def _statuses(pod: Tree) -> list[Tree]:
    """Return the statuses of a pod's containers, those that are started first, first."""
    groups = (trees.entries(pod, "status", group) for group in ("initContainerStatuses", "containerStatuses"))
    return [status for group in groups for status in group]


def _end(status: Tree, state: str) -> Trouble | None:
    ended = trees.fields(status, state, "terminated")
    code = trees.number(ended, "exitCode")
    if not code:
        return None
    return Trouble(
        trees.text(ended, "reason") or "Error",
        trees.text(ended, "message"),
        code,
        read_moment(ended.get("finishedAt")),
        trees.text(status, "name"),
    )


def _pod_end(pod: Tree) -> Trouble | None:
    """Return why a pod failed as a whole: evicted, preempted, past its deadline, its machine lost."""
    if phase_of(pod) != "Failed":
        return None
    status = trees.fields(pod, "status")
    target = trees.fields(status, "conditions", ("type", "DisruptionTarget"))
    moment = read_moment(target.get("lastTransitionTime"))
    message = trees.text(status, "message")
    if reason := trees.text(status, "reason"):
        return Trouble(reason, message, moment=moment)
    if target.get("status") == "True":
        return Trouble(trees.text(target, "reason") or "Disrupted", trees.text(target, "message"), moment=moment)
    return Trouble("Error", message)
