"""Reconciles objects of the older shape: hands them down, and hands the TrainJob's status back.

A TrainJob of today's that is deleted before its end is made again. A name that is somebody else's is told in the
condition InSync, as is what admission refuses, and tried again: a name becomes free, a runtime appears. A TrainJob that
began stays on the runtime that it began with, also if another of the name that it means appears later.

Safe to repeat after a crash at any write: objects are applied by name, statuses follow from what is seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from trainplane.admission.message import shortened
from trainplane.api import document, names
from trainplane.api import tree as trees
from trainplane.api.document import to_tree
from trainplane.api.errors import DecodeError
from trainplane.api.legacy import v2alpha1
from trainplane.api.trainjob import RuntimeRef
from trainplane.kube.controller import DONE, Failed, RequeueAfter, Terminal
from trainplane.kube.errors import ConflictError, NotFoundError
from trainplane.kube.expectations import Expectations
from trainplane.kube.resource import Key
from trainplane.legacy.older import standing
from trainplane.legacy.older.lowering import judge, lower_runtime, lower_train_job, runtime_name, settled
from trainplane.operator.adoption import OwnerKind
from trainplane.operator.errors import BehindError, EarlierSelfError, LoweringError, OperatorError
from trainplane.operator.legacy.older.handing import Handing
from trainplane.operator.status import written
from trainplane.operator.stores import Written

if TYPE_CHECKING:
    from trainplane.api.document import Document
    from trainplane.api.meta import Condition, ObjectMeta
    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.controller import Result
    from trainplane.kube.store import Store
    from trainplane.operator.apply import Writer
    from trainplane.operator.legacy.older.mirrors import Mirrors
    from trainplane.operator.stores import Stores

Kind = TypeVar("Kind", v2alpha1.TrainJob, v2alpha1.TrainingRuntime, v2alpha1.ClusterTrainingRuntime)

_Status: TypeAlias = v2alpha1.TrainJobStatus | v2alpha1.RuntimeStatus

_RUNTIMES: Final[dict[str, Any]] = {
    names.TRAINING_RUNTIME: v2alpha1.TrainingRuntime,
    names.CLUSTER_TRAINING_RUNTIME: v2alpha1.ClusterTrainingRuntime,
}
CATCH_UP_SECONDS: Final = 1.0
"""When to look again if a mirror is behind a write of ours; the watch brings it, and the key, sooner."""
AGAIN_SECONDS: Final = 30.0
"""When to look again, at the latest, if something is in the way that others may clear."""


class _Reconciler:
    """What the reconcilers of both have in common: reading the older object, and writing its status."""

    def __init__(self, writer: Writer, store: Store, clock: Clock) -> None:
        self._writer = writer
        self._store = store
        self._clock = clock
        self._status_writes = Expectations(store, clock)

    def _read(self, key: Key, kind: type[Kind]) -> Document[Kind] | None:
        """Return the older object; None if it is gone or about to go. Raises DecodeError."""
        entry = self._store.entry(key)
        if entry is None:
            return None
        found = document.decode(entry.data, kind)
        return None if found.view.metadata.deletion_timestamp else found

    async def _write(self, key: Key, meta: ObjectMeta, before: _Status, after: _Status) -> None:
        """Write what changed of a status, to the version that was looked at; another's news brings the key again."""
        changes = status_patch(before, after)
        if not changes:
            return
        patch = {"metadata": {"resourceVersion": meta.resource_version}, "status": changes}
        try:
            done = await self._writer.patch(self._store.resource, key, patch, subresource="status")
        except (NotFoundError, ConflictError):
            return
        self._status_writes.note(key, done.metadata.resource_version)


def status_patch(before: _Status, after: _Status) -> Tree:
    """Return the merge patch between two statuses; empty if they are the same."""
    was, now = (
        {**to_tree(one), "conditions": [written(condition) for condition in one.conditions]} for one in (before, after)
    )
    return {name: now.get(name) for name in sorted(was.keys() | now.keys()) if was.get(name) != now.get(name)}


class TrainJobs(_Reconciler):
    """Reconciles TrainJobs of the older shape; safe to repeat after a crash at any write."""

    def __init__(
        self, client: Client, writer: Writer, mirrors: Mirrors, stores: Stores, clock: Clock, *, initializers: str
    ) -> None:
        super().__init__(writer, mirrors.train_jobs, clock)
        self._older = {
            names.TRAINING_RUNTIME: (mirrors.training_runtimes, stores.training_runtimes),
            names.CLUSTER_TRAINING_RUNTIME: (mirrors.cluster_training_runtimes, stores.cluster_training_runtimes),
        }
        of = OwnerKind(v2alpha1.API_VERSION, names.TRAIN_JOB)
        self._jobs = Handing(client, writer, stores.train_jobs, clock, of)
        self._runtimes = Handing(client, writer, stores.training_runtimes, clock, of)
        self._initializers = initializers

    async def reconcile(self, key: Key) -> Result:
        """Hand a TrainJob down, and its status back."""
        try:
            job = self._read(key, v2alpha1.TrainJob)
        except DecodeError as error:
            return Terminal(error)
        if job is None:
            return DONE
        if self._status_writes.pending(key) or self._jobs.pending(key):
            return RequeueAfter(CATCH_UP_SECONDS)
        meta, trouble, today = job.view.metadata, None, None
        sync, over = standing.in_sync(meta.generation), standing.is_over(job.view.status)
        try:
            today = self._jobs.mirrored(key, meta)
            if not over:
                await self._hand_down(key, job, today)
        except (EarlierSelfError, BehindError):
            return RequeueAfter(CATCH_UP_SECONDS)
        except OperatorError as error:
            if over:
                return DONE  # its name is another's by now, and it needs none any more
            trouble = error
            sync = _told(error, meta.generation)
        after = standing.train_job_status(job.view.status, today, sync, self._clock.now())
        await self._write(key, meta, job.view.status, after)
        return DONE if trouble is None else Failed(trouble, AGAIN_SECONDS)

    async def _hand_down(self, key: Key, job: Document[v2alpha1.TrainJob], today: Tree | None) -> None:
        wrong = judge(job)
        if wrong:
            raise LoweringError("Invalid", "; ".join(map(str, wrong)))
        lowered = lower_train_job(job, self._ref(key, job, today), initializers=self._initializers)
        if lowered.runtime is not None:
            await self._runtimes.ensure(job.view.metadata, lowered.runtime, once=True)
        await self._jobs.ensure(job.view.metadata, lowered.train_job)

    def _ref(self, key: Key, job: Document[v2alpha1.TrainJob], today: Tree | None) -> RuntimeRef | None:
        """Return the runtime that a TrainJob began with; if it begins now, the one that it means."""
        ref = job.view.spec.runtime_ref
        if ref is None:
            return None
        if today is not None:
            return document.view(trees.fields(today, "spec", "runtimeRef"), RuntimeRef)
        older, todays = self._older[ref.kind]
        namespace = key.namespace if ref.kind == names.TRAINING_RUNTIME else ""
        uid = older.uid(Key(namespace, ref.name)) if ref.api_group == names.LEGACY_GROUP else None
        if uid is None:
            return settled(ref, is_older=False)
        entry = todays.entry(Key(namespace, runtime_name(ref.name)))
        by = None if entry is None else entry.decode(Written).metadata.controller
        if by is None or by.uid != uid:
            problem = f"{ref.kind} {ref.name} of {v2alpha1.API_VERSION} is not handed down yet"
            raise LoweringError("RuntimeNotReady", f"{problem}: its condition {v2alpha1.IN_SYNC} says why")
        return settled(ref, is_older=True)


class Runtimes(_Reconciler):
    """Reconciles runtimes of the older shape, of one kind."""

    def __init__(self, client: Client, writer: Writer, store: Store, todays: Store, clock: Clock) -> None:
        super().__init__(writer, store, clock)
        self._kind = _RUNTIMES[store.resource.kind]
        of = OwnerKind(v2alpha1.API_VERSION, store.resource.kind)
        self._runtimes = Handing(client, writer, todays, clock, of)

    async def reconcile(self, key: Key) -> Result:
        """Hand a runtime down."""
        try:
            runtime: Any = self._read(key, self._kind)  # of either kind
        except DecodeError as error:
            return Terminal(error)
        if runtime is None:
            return DONE
        if self._status_writes.pending(key) or self._runtimes.pending(Key(key.namespace, runtime_name(key.name))):
            return RequeueAfter(CATCH_UP_SECONDS)
        meta, trouble = runtime.view.metadata, None
        sync = standing.in_sync(meta.generation)
        try:
            await self._runtimes.ensure(meta, lower_runtime(runtime))
        except (EarlierSelfError, BehindError):
            return RequeueAfter(CATCH_UP_SECONDS)
        except OperatorError as error:
            trouble = error
            sync = _told(error, meta.generation)
        after = standing.runtime_status(runtime.view.status, sync, self._clock.now())
        await self._write(key, meta, runtime.view.status, after)
        return DONE if trouble is None else Failed(trouble, AGAIN_SECONDS)


def _told(error: OperatorError, generation: int) -> Condition:
    reason = error.reason if isinstance(error, LoweringError) else "NameTaken"
    return standing.out_of_sync(reason, shortened(str(error)), generation)
