"""The story of a TrainJob, told each time something about it changes.

    read        the TrainJob and its JobSet, from the mirrors; leave alone what others manage or what is not caught up
    observe     the status that it has now
    deadline    past it, the TrainJob failed
    ensure      unless it is over: its runtime kept, its objects rendered and applied
    tell        one write of status, and the news that it brings
    stop        a TrainJob that failed by its deadline has no JobSet: delete it, again until it is gone

Every step can be repeated, and a crash between any two writes is made good by telling the story again: the objects are
applied by name, the snapshot holds once it is there, the status is a function of what is seen.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import names
from trainplane.api.errors import DecodeError
from trainplane.api.meta import ObjectMeta
from trainplane.kube.controller import DONE, RequeueAfter, Terminal
from trainplane.kube.errors import AlreadyExistsError, ConflictError, ForbiddenError, InvalidError, NotFoundError
from trainplane.kube.writes import OwnWrites
from trainplane.operator import deadline, events, status
from trainplane.operator.applied import would_change
from trainplane.operator.budget import Budget
from trainplane.operator.errors import EarlierSelfError, ForeignObjectError, RuntimeUnsupportedError
from trainplane.operator.inherited import with_fixed_parts_of
from trainplane.operator.resources import JOB_SETS, TRAIN_JOBS, owned_by, resource_of
from trainplane.operator.settled import Settled
from trainplane.operator.stores import Written

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from trainplane.api.document import Document
    from trainplane.api.trainjob import TrainJob, TrainJobStatus
    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.controller import Result
    from trainplane.kube.events import EventRecorder
    from trainplane.kube.resource import Key
    from trainplane.operator.metrics import TrainJobMetrics
    from trainplane.operator.snapshot import Snapshots
    from trainplane.operator.stores import SeenJobSet, Stores
    from trainplane.operator.writer import Writer
    from trainplane.render.pipeline import Pipeline
    from trainplane.render.plan import KeptOnce

log = logging.getLogger(__name__)

CATCH_UP_SECONDS: Final = 1.0
"""When to look again if a mirror has not shown our last write; the watch brings it, and the key with it, sooner."""

EARLIER_SELF_SECONDS: Final = 2.0
"""When to look again if an earlier TrainJob's snapshot is still there: nobody tells us when it goes."""


@dataclass
class TrainJobReconciler:
    """Makes TrainJobs run. Everything it needs is handed to it; it keeps only what spares it work."""

    client: Client
    writer: Writer
    stores: Stores
    snapshots: Snapshots
    pipeline: Pipeline
    recorder: EventRecorder
    metrics: TrainJobMetrics
    clock: Clock

    def __post_init__(self) -> None:
        self._settled = Settled()
        self._started: dict[Key, str] = {}
        self._job_writes = OwnWrites(self.stores.train_jobs, self.clock)
        self._jobset_writes = OwnWrites(self.stores.job_sets, self.clock)

    async def reconcile(self, key: Key) -> Result:
        """Tell the story of one TrainJob."""
        try:
            job = self.stores.train_job(key)
        except DecodeError as error:  # stored under a schema that we do not know; nothing becomes right by itself
            self._record(
                ObjectMeta(name=key.name, namespace=key.namespace, uid=self.stores.train_jobs.uid(key) or ""),
                (events.creation_failed(error),),
            )
            return Terminal(error)
        if job is None:
            self._forget(key)
            return DONE
        if job.view.spec.managed_by != names.MANAGED_BY_TRAINER:
            return DONE
        if self._job_writes.pending(key) or self._jobset_writes.pending(key):
            return RequeueAfter(CATCH_UP_SECONDS)
        return await self._tell(key, job)

    async def _tell(self, key: Key, job: Document[TrainJob]) -> Result:
        now = self.clock.now()
        jobset, trouble = self._jobset_of(key, job.view.metadata)
        after = status.observe(job.view, jobset, now)
        left = deadline.seconds_left(job.view, after.conditions, now)
        if left is not None and left <= 0:
            after = status.fail(after, names.REASON_DEADLINE_EXCEEDED, deadline.message(job.view), now)
            left = None
        if status.is_finished(after.conditions):
            self._forget(key)
        elif trouble is None and job.view.metadata.deletion_timestamp is None:
            try:
                await self._ensure(key, job, jobset)
            except RuntimeUnsupportedError as error:
                after = status.fail(after, names.REASON_RUNTIME_NOT_SUPPORTED, str(error), now)
            except Exception as error:  # noqa: BLE001 the status is written all the same, then this is raised
                trouble = error
        caught_up = await self._write_status(key, job.view, after, now)
        if jobset is not None and status.failed_by_deadline(after.conditions):
            await self._stop(key, jobset)
        return self._outcome(job.view.metadata, trouble, left if caught_up else CATCH_UP_SECONDS)

    def _outcome(self, job: ObjectMeta, trouble: Exception | None, again: float | None) -> Result:
        if isinstance(trouble, EarlierSelfError):
            return RequeueAfter(EARLIER_SELF_SECONDS)
        if trouble is not None:
            self._record(job, (events.creation_failed(trouble),), action=events.RECONCILING)
            raise trouble
        return DONE if again is None else RequeueAfter(again)

    def _jobset_of(self, key: Key, job: ObjectMeta) -> tuple[SeenJobSet | None, Exception | None]:
        """Return the TrainJob's JobSet if it has one; and what is in the way if the name is another's."""
        jobset = self.stores.job_set(key)
        if jobset is None:
            return None, None
        owner = jobset.meta.controller
        if owner is not None and owner.uid == job.uid:
            return jobset, None
        if owner is not None and (owner.kind, owner.name) == (names.TRAIN_JOB, job.name):
            return None, EarlierSelfError(f"JobSet {key.name} of an earlier TrainJob is about to be removed")
        return None, ForeignObjectError(
            f"JobSet {key.name} is not controlled by this TrainJob: delete it, or give the TrainJob another name"
        )

    async def _ensure(self, key: Key, job: Document[TrainJob], jobset: SeenJobSet | None) -> None:
        """See that the runtime is kept and the objects are as they should."""
        meta = job.view.metadata
        if self._settled.holds(key, meta, None if jobset is None else jobset.meta):
            return
        runtime = await self.snapshots.runtime_of(job, is_new=jobset is None)
        if jobset is not None:
            if jobset.meta.deletion_timestamp is not None:
                return  # it is made anew when this one is gone
            if not (job.view.spec.suspend or jobset.suspended):
                self._settled.note(key, meta, jobset.meta)  # what runs is never changed
                return
        with Budget(f"TrainJob {key}"):
            rendering = self.pipeline.render(job, runtime, begins=jobset is None)
        for kept in rendering.kept:
            await self._keep(meta, kept)
        *others, body = (rendered.tree for rendered in rendering.objects)
        for tree in others:
            await self.writer.apply(resource_of(tree), tree)
        if jobset is not None and not await self._differs(key, jobset, body):
            self._settled.note(key, meta, jobset.meta)
            return
        written = await self._apply(key, body, exists=jobset is not None)
        self._settled.note(key, meta, written.metadata)
        if jobset is None:
            pods = sum(pod_set.replicas * pod_set.count for pod_set in rendering.plan.pod_sets)
            self._record(meta, (events.created(key.name, pods, suspended=job.view.spec.suspend),))

    async def _differs(self, key: Key, jobset: SeenJobSet, body: Tree) -> bool:
        """Say whether a JobSet that is there is not as it should be."""
        if jobset.suspended != body["spec"].get("suspend", False):
            return True
        try:
            live = await self.client.get(JOB_SETS, key.name, key.namespace)
        except NotFoundError:
            return True
        return would_change(live, body, names.FIELD_MANAGER)

    async def _apply(self, key: Key, body: Tree, *, exists: bool) -> Written:
        try:
            written = await self.writer.apply(JOB_SETS, body)
        except (InvalidError, ForbiddenError) as refusal:
            if not exists:
                raise
            log.info("jobset kept as it was made", extra={"jobset": str(key), "refusal": str(refusal)})
            live = await self.client.get(JOB_SETS, key.name, key.namespace)
            kept = with_fixed_parts_of(live, body)
            if not would_change(live, kept, names.FIELD_MANAGER):
                return msgspec.convert(live, Written)
            written = await self.writer.apply(JOB_SETS, kept)
        self._jobset_writes.note(key, written.metadata.resource_version)
        return written

    async def _keep(self, job: ObjectMeta, kept: KeptOnce) -> None:
        """Create what a plugin wants made once, unless it is there."""
        identity: Tree = {"apiVersion": kept.api_version, "kind": kept.kind}
        resource = resource_of(identity)
        try:
            await self.client.get(resource, kept.name, job.namespace, type_=bytes)
        except NotFoundError:
            content = kept.make()
            meta = {
                **content.get("metadata", {}),
                "name": kept.name,
                "namespace": job.namespace,
                "ownerReferences": [owned_by(job)],
            }
            try:
                await self.writer.create(resource, {**content, **identity, "metadata": meta})
            except AlreadyExistsError:
                return

    async def _write_status(self, key: Key, before: TrainJob, after: TrainJobStatus, now: datetime) -> bool:
        """Write the status if it changed, and tell what that means; False if the mirror was behind."""
        patch = status.merge_patch(before, after)
        if patch is None:
            return True
        try:
            written = await self.writer.patch(TRAIN_JOBS, key, patch, subresource="status")
        except NotFoundError:
            return True  # deleted meanwhile
        except ConflictError:
            return False
        self._job_writes.note(key, written.metadata.resource_version)
        self._record(before.metadata, events.of_change(before.status, after))
        if events.has_started(before.status, after):
            self._time_start(key, before.metadata, now)
        return True

    def _time_start(self, key: Key, job: ObjectMeta, now: datetime) -> None:
        """Measure a TrainJob's first start; a later one, after a stop, says nothing about how long creation took."""
        if job.creation_timestamp is not None and self._started.get(key) != job.uid:
            self._started[key] = job.uid
            self.metrics.started((now - job.creation_timestamp).total_seconds())

    def _forget(self, key: Key) -> None:
        self._settled.forget(key)
        self._started.pop(key, None)

    async def _stop(self, key: Key, jobset: SeenJobSet) -> None:
        """Delete the JobSet; an error is raised and so retried, for its pods hold what others wait for."""
        if jobset.meta.deletion_timestamp is not None:
            return
        try:
            await self.writer.delete(JOB_SETS, key, jobset.meta.uid)
        except (NotFoundError, ConflictError):
            return  # gone, or another of its name has come, of which the mirror will tell

    def _record(self, job: ObjectMeta, news: Iterable[events.News], *, action: str = "") -> None:
        for one in news:
            self.recorder.record(events.about(job), one.type, one.reason, one.message, action=action)
