"""Events: which of a namespace's are about a TrainJob, and what they tell, in the order of time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.moments import BEGINNING, read_moment
from trainplane.client.types.jobs import Event
from trainplane.explain.pods import cluster_of, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from trainplane.api.tree import Tree

_ROLES: Final = (names.JOB_NODE, names.JOB_LAUNCHER, names.JOB_DATASET, names.JOB_MODEL)


def read_events(docs: Iterable[Tree]) -> list[Event]:
    """Return core/v1 events, in the order in which they first happened."""
    return sorted((_event(doc) for doc in docs), key=lambda event: event.event_time)


def choose_events(docs: Iterable[Tree], job: Tree, pods: Sequence[Tree] = ()) -> list[Tree]:
    """Return those events of a namespace that are about a TrainJob or what was made for it, in the order of time.

    That is the TrainJob, its JobSet, its Workload, its Jobs and its pods, those too that are gone. Events of an earlier
    TrainJob of the same name are left out.
    """
    concerns = _Concerns(job, pods)
    return sorted((doc for doc in docs if concerns.hold(doc)), key=first_time)


def first_time(doc: Tree) -> datetime:
    """Return when an event happened first: by whichever of its times is set."""
    times = (doc.get("firstTimestamp"), doc.get("eventTime"), doc.get("lastTimestamp"))
    created = trees.get(doc, "metadata", "creationTimestamp")
    return next((moment for time in (*times, created) if (moment := read_moment(time))), BEGINNING)


def last_time(doc: Tree) -> datetime:
    """Return when an event happened last."""
    times = (trees.get(doc, "series", "lastObservedTime"), doc.get("lastTimestamp"), doc.get("eventTime"))
    return max([first_time(doc), *(moment for time in times if (moment := read_moment(time)))])


def _event(doc: Tree) -> Event:
    return Event(
        involved_object_kind=trees.text(doc, "involvedObject", "kind") or "",
        involved_object_name=trees.text(doc, "involvedObject", "name") or "",
        message=trees.text(doc, "message") or "",
        reason=trees.text(doc, "reason") or "",
        event_time=first_time(doc),
        type=trees.text(doc, "type") or "Normal",
        count=trees.number(doc, "series", "count") or trees.number(doc, "count") or 1,
        cluster=cluster_of(doc),
        last_time=last_time(doc),
    )


class _Concerns:
    """Which events are about a TrainJob."""

    def __init__(self, job: Tree, pods: Sequence[Tree]) -> None:
        self._name = name_of(job)
        self._uid = trees.get(job, "metadata", "uid")
        self._since = read_moment(trees.get(job, "metadata", "creationTimestamp")) or BEGINNING
        self._pods = {name_of(pod) for pod in pods}
        known = {str(entry.get("name")) for entry in trees.entries(job, "status", "jobsStatus")}
        roles = "|".join(map(re.escape, sorted(known | set(_ROLES))))
        name = re.escape(self._name)
        self._job = re.compile(rf"{name}-({roles})-\d+")
        self._pod = re.compile(rf"{name}-({roles})-\d+-\d+-[a-z0-9]{{5}}")
        self._workload = re.compile(rf"trainjob-{name}-[0-9a-f]{{5}}")

    def hold(self, event: Tree) -> bool:
        about = trees.fields(event, "involvedObject")
        kind, name = about.get("kind"), str(about.get("name") or "")
        if last_time(event) < self._since:
            return False
        if kind == names.TRAIN_JOB:
            same = not about.get("uid") or not self._uid or about["uid"] == self._uid or cluster_of(event) is not None
            return name == self._name and same
        if kind == names.JOBSET:
            return name == self._name
        if kind == "Pod":
            return name in self._pods or bool(self._pod.fullmatch(name))
        if kind == "Job":
            return bool(self._job.fullmatch(name))
        return kind == "Workload" and bool(self._workload.fullmatch(name))
