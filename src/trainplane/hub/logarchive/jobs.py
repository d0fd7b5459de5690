"""The hub's jobs and their Workloads, mirrored: where every job is, without asking for each."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.hub.kinds import TRAIN_JOB, JobKey
from trainplane.hub.placement import named_in, newest, place
from trainplane.kube.projection import Index
from trainplane.kube.reflector import Reflector
from trainplane.kube.resource import Key
from trainplane.kube.store import Store
from trainplane.resources import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trainplane.api.tree import Tree
    from trainplane.hub.kinds import JobKind
    from trainplane.hub.placement import Placement
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.store import Change

_BY_JOB: Final = "job"


class _Meta(msgspec.Struct):
    namespace: str = ""
    labels: dict[str, str] = {}


class _Labelled(msgspec.Struct):
    metadata: _Meta


class Jobs:
    """Mirrors of jobs and Workloads. Listeners hear the key of each job that may be elsewhere now."""

    def __init__(self, client: Client, clock: Clock, kinds: Sequence[JobKind] = (TRAIN_JOB,)) -> None:
        self.kinds = tuple(kinds)
        """The kinds of jobs that are looked after."""
        self._jobs = {kind.name: Store(kind.resource) for kind in kinds}
        self._by_uid: dict[str, JobKey] = {}
        of_job = Index(_Labelled, lambda found: [_in(found.metadata.namespace, found.metadata.labels)])
        self._workloads = Store(WORKLOADS, indexes={_BY_JOB: of_job})
        self._named: dict[Key, str] = {}
        """By the key of a Workload that is there: the worker that it names, or named last."""
        self._listeners: list[Callable[[JobKey], None]] = []
        self.reflectors = [
            *(
                Reflector(client, kind.resource, self._jobs[kind.name], [partial(self._job_changed, kind.name)], clock)
                for kind in kinds
            ),
            Reflector(client, WORKLOADS, self._workloads, [self._workload_changed], clock),
        ]

    def listen(self, changed: Callable[[JobKey], None]) -> None:
        """Call back at each change of a job or of its Workload."""
        self._listeners.append(changed)

    def get(self, namespace: str, name: str, kind: str = names.TRAIN_JOB) -> Tree | None:
        """Return a job, None where there is none, or none of its kind is looked after."""
        store = self._jobs.get(kind)
        return None if store is None else store.decode(Key(namespace, name), dict)

    def by_uid(self, uid: str) -> Tree | None:
        """Return the job of a uid, None if it is deleted."""
        key = self._by_uid.get(uid)
        return None if key is None else self.get(*key)

    def place(self, job: Tree) -> Placement:
        """Return where a job is."""
        workload = self.workload(job)
        if workload is None:
            return place(job, None)
        metadata = workload["metadata"]
        return place(job, workload, self._named.get(Key(metadata["namespace"], metadata["name"])))

    def workload(self, job: Tree) -> Tree | None:
        """Return the Workload of a job, in its namespace alone; None if Kueue has made none."""
        metadata = job["metadata"]
        keys = self._workloads.by_index(_BY_JOB, _in(metadata["namespace"], {names.LABEL_JOB_UID: metadata["uid"]}))
        return newest(found for key in keys if (found := self._workloads.decode(key, dict)) is not None)

    def _job_changed(self, kind: str, change: Change) -> None:
        key = JobKey(*change.key, kind)
        if change.old is not None:
            self._by_uid.pop(change.old.uid, None)
        if change.new is not None:
            self._by_uid[change.new.uid] = key
        self._notify(key)

    def _workload_changed(self, change: Change) -> None:
        entry = change.new or change.old
        workload = entry.decode(dict) if entry else {}
        if change.new is None:
            self._named.pop(change.key, None)
        elif named := named_in(workload):
            self._named[change.key] = named
        uid = trees.get(workload, "metadata", "labels", names.LABEL_JOB_UID)
        key = self._by_uid.get(str(uid))
        if key is not None and key.namespace == change.key.namespace:
            self._notify(key)

    def _notify(self, key: JobKey) -> None:
        for listener in self._listeners:
            listener(key)


def _in(namespace: str, labels: dict[str, str]) -> str:
    return f"{namespace}/{labels.get(names.LABEL_JOB_UID, '')}"
