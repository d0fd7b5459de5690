"""The hub's TrainJobs and their Workloads, mirrored: where every job is, without asking for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.hub.placement import newest, place
from trainplane.kube.projection import Index
from trainplane.kube.reflector import Reflector
from trainplane.kube.resource import Key
from trainplane.kube.store import Store
from trainplane.resources import TRAIN_JOBS, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.api.tree import Tree
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
    """Mirrors of TrainJobs and Workloads. Listeners hear the key of each TrainJob that may be elsewhere now."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._jobs = Store(TRAIN_JOBS)
        self._by_uid: dict[str, Key] = {}
        of_job = Index(_Labelled, lambda found: [_in(found.metadata.namespace, found.metadata.labels)])
        self._workloads = Store(WORKLOADS, indexes={_BY_JOB: of_job})
        self._listeners: list[Callable[[Key], None]] = []
        self.reflectors = [
            Reflector(client, TRAIN_JOBS, self._jobs, [self._job_changed], clock),
            Reflector(client, WORKLOADS, self._workloads, [self._workload_changed], clock),
        ]

    def listen(self, changed: Callable[[Key], None]) -> None:
        """Call back at each change of a TrainJob or of its Workload."""
        self._listeners.append(changed)

    def get(self, namespace: str, name: str) -> Tree | None:
        """Return a TrainJob, None where there is none."""
        return self._jobs.decode(Key(namespace, name), dict)

    def by_uid(self, uid: str) -> Tree | None:
        """Return the TrainJob of a uid, None if it is deleted."""
        key = self._by_uid.get(uid)
        return None if key is None else self._jobs.decode(key, dict)

    def list(self, namespace: str | None = None) -> list[Tree]:
        """Return all TrainJobs, or those of a namespace, in the order of their names."""
        keys = sorted(key for key in self._jobs if namespace in {None, key.namespace})
        return [job for key in keys if (job := self._jobs.decode(key, dict)) is not None]

    def place(self, job: Tree) -> Placement:
        """Return where a TrainJob is."""
        return place(job, self.workload(job))

    def workload(self, job: Tree) -> Tree | None:
        """Return the Workload of a TrainJob, in its namespace alone; None if Kueue has made none."""
        metadata = job["metadata"]
        keys = self._workloads.by_index(_BY_JOB, _in(metadata["namespace"], {names.LABEL_JOB_UID: metadata["uid"]}))
        return newest(found for key in keys if (found := self._workloads.decode(key, dict)) is not None)

    def _job_changed(self, change: Change) -> None:
        if change.old is not None:
            self._by_uid.pop(change.old.uid, None)
        if change.new is not None:
            self._by_uid[change.new.uid] = change.key
        self._notify(change.key)

    def _workload_changed(self, change: Change) -> None:
        entry = change.new or change.old
        uid = trees.get(entry.decode(dict), "metadata", "labels", names.LABEL_JOB_UID) if entry else None
        key = self._by_uid.get(str(uid))
        if key is not None and key.namespace == change.key.namespace:
            self._notify(key)

    def _notify(self, key: Key) -> None:
        for listener in self._listeners:
            listener(key)


def _in(namespace: str, labels: dict[str, str]) -> str:
    return f"{namespace}/{labels.get(names.LABEL_JOB_UID, '')}"
