"""News of a job: trouble of its pods, and what was made and deleted for it.

Who waits for a job looks at the job, not at each of its pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.legacy.tally import is_terminating, phase
from trainplane.lifecycle.events import EventContent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainplane.api.tree import Tree
    from trainplane.legacy.decision import Decision

MOST: Final = 20
"""Pods whose trouble is told in one look: those of a large job mostly share one."""
_TOLD: Final = ("Pod", "Service")
_ENDED: Final = ("Succeeded", "Failed")
_LETTERS: Final = 512


def of_pods(pods: Iterable[Tree]) -> Iterator[EventContent]:
    """Yield what keeps pods from running, as kubelet and scheduler say it."""
    troubled = 0
    for pod in pods:
        if phase(pod) in _ENDED or is_terminating(pod):
            continue
        told = list(_of_containers(pod) if _statuses(pod) else _of_conditions(pod))
        yield from told
        troubled += bool(told)
        if troubled >= MOST:
            return


def of_made(decision: Decision) -> Iterator[EventContent]:
    """Yield which pods and Services were made and deleted, by the old operator's reasons; one Event for all of a kind.

    It wrote one for each, which for a large job is as many writes again as the job itself takes.
    """
    for kind in _TOLD:
        made = [_name(one) for one in decision.create if one.get("kind") == kind]
        deleted = [one.name for one in decision.delete if one.kind == kind]
        for done, verb, names in (("Create", "made", made), ("Delete", "deleted", deleted)):
            if names:
                yield EventContent("Normal", f"Successful{done}{kind}", f"{kind}s {verb}: {_listed(names)}")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return (", ".join(names[:MOST]) + more)[:_LETTERS]


def _statuses(pod: Tree) -> list[Tree]:
    """Return the statuses of a pod's containers; of its init containers while those run."""
    return trees.entries(pod, "status", "containerStatuses") or trees.entries(pod, "status", "initContainerStatuses")


def _of_containers(pod: Tree) -> Iterator[EventContent]:
    for status in _statuses(pod):
        where = f"pod {_name(pod)}, container {trees.text(status, 'name') or ''}"
        ended, waits = trees.fields(status, "state", "terminated"), trees.fields(status, "state", "waiting")
        if trees.number(ended, "exitCode"):
            said = f": {ended['message']}" if trees.text(ended, "message") else ""
            yield _warning(trees.text(ended, "reason"), f"{where}: ended with exit code {ended['exitCode']}{said}")
        elif trees.text(waits, "message"):
            yield _warning(trees.text(waits, "reason"), f"{where}: waits: {waits['message']}")


def _of_conditions(pod: Tree) -> Iterator[EventContent]:
    """Yield the last of the pod's conditions, unless it is good news."""
    conditions = trees.entries(pod, "status", "conditions")
    if not conditions:
        return
    last = max(conditions, key=lambda one: trees.text(one, "lastTransitionTime") or "")
    if last.get("status") != "True":
        yield _warning(trees.text(last, "reason"), f"pod {_name(pod)}: {trees.text(last, 'message') or 'is not ready'}")


def _name(item: Tree) -> str:
    return trees.text(item, "metadata", "name") or ""


def _warning(reason: str | None, message: str) -> EventContent:
    return EventContent("Warning", (reason or "PodNotRunning")[:64], message[:_LETTERS])
