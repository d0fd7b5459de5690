"""One pod: which place of its TrainJob it takes, which container does the work, and how that is doing."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.moments import BEGINNING, read_moment
from trainplane.api.podindex import PodIndex, attempt, read_index

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from trainplane.api.tree import Tree

STARTED: Final = frozenset({"Running", "Succeeded"})
"""Phases of a pod whose containers were all started."""
ENDED: Final = frozenset({"Succeeded", "Failed"})
GIVEN_UP: Final = frozenset({"DeletionByTaintManager", "DeletionByPodGC", "DeletionByDeviceTaintManager"})
"""Reasons of DisruptionTarget by which a pod is given up with its node, whose kubelet may never tell how it ended."""

_MOST_GRACE: Final = 7 * 24 * 3600
"""The longest grace period that is believed, in seconds."""
STOPPED: Final = frozenset({130, 137, 143})
"""Exit codes of who is told to stop, and of who does not heed that."""
_ERROR: Final = "Error"


def index_of(pod: Tree) -> PodIndex | None:
    """Return where a pod stands in its TrainJob; None if it is no pod of a JobSet."""
    labels = trees.fields(pod, "metadata", "labels")
    if not isinstance(labels.get(names.LABEL_REPLICATED_JOB), str):
        return None
    return read_index(labels, trees.fields(pod, "metadata", "annotations"))


def attempt_of(pod: Tree) -> int:
    """Return how often the TrainJob had been restarted when a pod was created."""
    return attempt(trees.fields(pod, "metadata", "labels"))


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


def newest(pods: Iterable[Tree]) -> dict[PodIndex, Tree]:
    """Return the pod that has each place now: the one made last, of two of the same second the one that still lives."""
    found: dict[PodIndex, Tree] = {}
    for pod in sorted(pods, key=lambda pod: (created(pod), phase_of(pod) not in ENDED, name_of(pod))):
        place = index_of(pod)
        if place is not None:
            found[place] = pod
    return dict(sorted(found.items()))


def is_given_up(pod: Tree) -> bool:
    """Return whether a pod is given up with its node: what its status says of containers is from before."""
    target = trees.fields(pod, "status", "conditions", ("type", "DisruptionTarget"))
    known = target.get("status") == "True" and trees.text(target, "reason") in GIVEN_UP
    return known and phase_of(pod) not in ENDED


def container_of(pod: Tree) -> Tree | None:
    """Return the container of a pod that does its work: `node`, else the one named as the role, else the first."""
    containers = trees.entries(pod, "spec", "containers")
    place = index_of(pod)
    wanted = [names.CONTAINER_NODE, *([place.replicated_job] if place else [])]
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


def disruption_of(pod: Tree) -> Trouble | None:
    """Return the condition DisruptionTarget of a pod that is drained, preempted, evicted, or lost with its node."""
    target = trees.fields(pod, "status", "conditions", ("type", "DisruptionTarget"))
    if target.get("status") != "True":
        return None
    reason = trees.text(target, "reason") or "Disrupted"
    return Trouble(reason, trees.text(target, "message"), moment=read_moment(target.get("lastTransitionTime")))


def deletion_of(pod: Tree) -> Trouble | None:
    """Return when the deletion of a pod was requested."""
    deadline = read_moment(trees.get(pod, "metadata", "deletionTimestamp"))
    if deadline is None:
        return None
    grace = trees.number(pod, "metadata", "deletionGracePeriodSeconds") or 0
    return Trouble("Deleted", None, moment=deadline - timedelta(seconds=min(max(grace, 0), _MOST_GRACE)))


def trouble_of(pod: Tree) -> Trouble | None:
    """Return what is wrong with a pod at present; None if nothing is, or if all that can be said is that it waits."""
    return end_of(pod) or wait_of(pod)


def end_of(pod: Tree) -> Trouble | None:
    """Return how a pod, or the present run of one of its containers, ended, if badly."""
    found = [end for status in _statuses(pod) if (end := _end(status, "state"))]
    whole = _pod_end(pod)
    stopped = whole is not None and whole.reason != _ERROR and all(end.exit_code in STOPPED for end in found)
    if not found or stopped:
        return whole
    return min(found, key=lambda end: end.moment or BEGINNING)


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
        trees.text(ended, "reason") or _ERROR,
        trees.text(ended, "message"),
        code,
        read_moment(ended.get("finishedAt")),
        trees.text(status, "name"),
    )


def _pod_end(pod: Tree) -> Trouble | None:
    """Return why a pod failed as a whole: evicted, preempted, past its deadline, its machine lost."""
    if phase_of(pod) != "Failed" and not is_given_up(pod):
        return None
    status = trees.fields(pod, "status")
    target = trees.fields(status, "conditions", ("type", "DisruptionTarget"))
    moment = read_moment(target.get("lastTransitionTime"))
    message = trees.text(status, "message")
    if reason := trees.text(status, "reason"):
        return Trouble(reason, message, moment=moment)
    if target.get("status") == "True":
        return Trouble(trees.text(target, "reason") or "Disrupted", trees.text(target, "message"), moment=moment)
    return Trouble(_ERROR, message)
