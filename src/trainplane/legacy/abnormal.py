"""Pods that are not well, told of on the job itself: people look there first. Pure.

A container that waits for something with words about it, one that ended with an error, and a pod that no node takes:
each in the pod's own words, which its users wrote or the kubelet did, cut to a size that an Event bears.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from trainplane.api import tree as trees
from trainplane.lifecycle.events import EventContent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainplane.api.tree import Tree

MOST: Final = 8
"""Pods of one job that are told of at one look: a job of a thousand pods has one trouble, not a thousand."""
_LETTERS: Final = 512
"""Letters of a pod's words that are passed on."""
_REASON: Final = 64


class Abnormality(NamedTuple):
    """What is wrong with a pod: of which, where in it, and how to say it."""

    uid: str
    place: str
    news: EventContent


def abnormalities(pods: Iterable[Tree]) -> list[Abnormality]:
    """Return what is wrong with the first few pods that are not well; of a pod on its way out, nothing is."""
    found: list[Abnormality] = []
    for pod in pods:
        if trees.text(pod, "metadata", "deletionTimestamp") is None:
            found.extend(_of_pod(pod))
        if len(found) >= MOST:
            break
    return found[:MOST]


def _of_pod(pod: Tree) -> Iterator[Abnormality]:
    name, uid = trees.text(pod, "metadata", "name") or "", trees.text(pod, "metadata", "uid") or ""
    containers = trees.entries(pod, "status", "containerStatuses")
    started = containers or trees.entries(pod, "status", "initContainerStatuses")
    for container in started:
        where = trees.text(container, "name") or ""
        waiting, ended = trees.fields(container, "state", "waiting"), trees.fields(container, "state", "terminated")
        code = trees.number(ended, "exitCode")
        if code:
            yield _abnormality(uid, where, ended, f"container {where} of pod {name} ended with exit code {code}")
        elif trees.text(waiting, "message"):
            yield _abnormality(uid, where, waiting, f"container {where} of pod {name} waits")
    if not started:
        scheduled = trees.fields(pod, "status", "conditions", ("type", "PodScheduled"))
        if scheduled.get("status") == "False":
            yield _abnormality(uid, "", scheduled, f"no node takes pod {name}")


def _abnormality(uid: str, place: str, state: Tree, what: str) -> Abnormality:
    reason, words = trees.text(state, "reason") or "Abnormal", trees.text(state, "message")
    message = f"{what}: {words[:_LETTERS]}" if words else what
    return Abnormality(uid, place, EventContent("Warning", reason[:_REASON], message))
