"""Reconciles one TrainJob; safe to re-run after a crash at any write.

    read        the TrainJob, its JobSet and pods, from the mirrors; leave alone what others manage or is not caught up
    observe     the status that it has now, what went wrong first, and what became of its output
    deadline    past it, the TrainJob failed; and so it did if another that it waits for failed (`after`)
    ensure      unless it is over: its runtime kept, its objects rendered and applied (`objects`)
    write       one write of status, and the Events of what changed in it
    stop        a TrainJob that we failed has no JobSet: delete it, again until it is gone

Every step can be repeated, and a crash between any two writes is made good by the next reconcile: the objects are
applied by name, the snapshot holds once it is there, the status is a function of what is seen.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import names
from trainplane.api.errors import DecodeError
from trainplane.api.meta import ObjectMeta, is_true
from trainplane.explain import faults
from trainplane.kube.controller import DONE, Failed, RequeueAfter, Terminal
from trainplane.kube.errors import ConflictError, KubeError, NotFoundError
from trainplane.kube.events import ObjectReference
from trainplane.kube.expectations import Expectations
from trainplane.kube.resource import Key
from trainplane.lifecycle import deadline, events
from trainplane.lifecycle.conditions import is_finished, is_stopped
from trainplane.lifecycle.status import fail, observe, ready_jobs
from trainplane.operator import recovery, status
from trainplane.operator.adoption import check_owner
from trainplane.operator.after import After
from trainplane.operator.chronicle import Chronicle
from trainplane.operator.errors import BehindError, EarlierSelfError, OperatorError, TerminalError
from trainplane.operator.evidence import Evidence
from trainplane.operator.lost import Lost
from trainplane.operator.mirrors import Mirrors
from trainplane.operator.objects import Objects
from trainplane.operator.others import Others
from trainplane.operator.outputs import Outputs
from trainplane.operator.pods import PodMirror
from trainplane.operator.witness import Sighting, Witness, with_phase
from trainplane.resources import JOB_SETS, TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from trainplane.api.document import Document
    from trainplane.api.trainjob import TrainJob, TrainJobStatus
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.controller import Result
    from trainplane.kube.eventmerger import Recorder
    from trainplane.operator.apply import Writer
    from trainplane.operator.metrics import TrainJobMetrics
    from trainplane.operator.others import Prepare
    from trainplane.operator.owned import OwnedMirrors
    from trainplane.operator.situation import Situation
    from trainplane.operator.snapshot import Snapshots
    from trainplane.operator.stores import Meta, SeenJobSet, Stores
    from trainplane.render.pipeline import Pipeline

log = logging.getLogger(__name__)

CATCH_UP_SECONDS: Final = 1.0
"""When to look again if a mirror is behind our last write, or the truth; the watch brings it, and the key, sooner."""

RECONCILING: Final = "Reconciling"
"""The action of Events about what is in the way."""

EARLIER_SELF_SECONDS: Final = 2.0
"""When to look again if an earlier TrainJob's snapshot or keys are still there: nobody tells us when they go."""

EARLY_SECONDS: Final = 0.3
"""When to look again if a JobSet failed and no pod told why yet; its news brings the key sooner."""

LEAST_SECONDS: Final = 0.2
"""The shortest wait for a change that is put off: looking more often would be work itself."""
BUSY_SECONDS: Final = 15.0
"""How long a change that nobody waits for may wait while many TrainJobs want something at once."""


def _never() -> bool:
    return False


@dataclass
class TrainJobReconciler:
    """Makes TrainJobs run. Everything it needs is handed to it; it keeps only what spares it work."""

    client: Client
    writer: Writer
    stores: Stores
    snapshots: Snapshots
    pipeline: Pipeline
    recorder: Recorder
    metrics: TrainJobMetrics
    clock: Clock
    owned: OwnedMirrors
    busy: Callable[[], bool] = _never
    prepare: Prepare | None = None

    def __post_init__(self) -> None:
        mirror = PodMirror(self.stores.pods)
        self._witness = Witness(mirror, Evidence(self.client, mirror, self.clock), self.clock)
        self._outputs = Outputs(self.client)
        self.chronicle = Chronicle(self.clock)
        self._waits: dict[Key, tuple[float, float]] = {}
        self._scheduled: dict[Key, str] = {}
        self.lost = Lost(self.stores.train_jobs, self.clock)
        others = Others(self.client, self.writer, self.snapshots, self.owned, self.lost, self.clock, self.prepare)
        self._mirrors = Mirrors(self.client, self.stores.train_jobs, self.stores.job_sets, self.clock)
        self._objects = Objects(self._mirrors, self.writer, self.snapshots, self.pipeline, self.clock, others)
        self.after = After(self.stores, self.writer)
        self._started: dict[Key, str] = {}
        self._prunes = False
        self._untold: dict[Key, tuple[TrainJob, TrainJobStatus]] = {}
        """Writes of status that may have been done or not: of which TrainJob as it was, to what."""
        self._job_writes = Expectations(self.stores.train_jobs, self.clock)

    async def reconcile(self, key: Key) -> Result:
        """Reconcile one TrainJob. Safe to repeat after a crash at any write."""
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
            self._untold.pop(key, None)
            self.chronicle.forget(key)
            return DONE
        await self._let_queue(key, job.view)
        if job.view.spec.managed_by == names.MANAGED_BY_MULTIKUEUE:
            return await self._tell_dispatched(key, job.view)
        if job.view.spec.managed_by != names.MANAGED_BY_TRAINER:
            return DONE
        if self._job_writes.pending(key) or self._objects.pending(key):
            return RequeueAfter(CATCH_UP_SECONDS)
        return await self._reconcile(key, job)

    async def _reconcile(self, key: Key, job: Document[TrainJob]) -> Result:
        now = self.clock.now()
        jobset, trouble = self._jobset_of(key, job.view.metadata)
        if jobset is not None and recovery.is_outdated(job.view, jobset):
            return await self._restart(key, job, jobset, now)
        seen = self._witness.look(key, jobset)
        after = await self._observe(key, job.view, jobset, seen, now)
        if isinstance(after, RequeueAfter):
            return after
        decision = await self._next_attempt(key, job, after, jobset, seen)
        if isinstance(decision, recovery.Restart):
            return await self._decide_restart(key, job, decision, after, now)
        if decision is not None:
            after = recovery.failed(after, decision)
        after = await self._outputs.end(job.view, after, jobset, seen.pods, now)
        self._tell_scheduled(key, job.view, after, seen)
        after, left = self._doom(job.view, after, now)
        mounts = jobset is not None and jobset.has_keys and any(pod.mounts for pod in seen.pods)
        here = self._objects.meet(key, job, jobset, mounts=mounts)
        if is_finished(after.conditions):
            self._forget(key)
            if jobset is not None and not (here.digest or is_finished(job.view.status.conditions)):
                await self._objects.learn(here)
        elif trouble is None and job.view.metadata.deletion_timestamp is None:
            after, trouble = await self._ensure(here, after, now)
        hindered = trouble is not None and not isinstance(trouble, EarlierSelfError | BehindError)
        after = with_phase(job.view, after, seen, names.EVENT_CREATION_FAILED if hindered else "")
        after = status.record(after, here.digest, at_once=trouble is not None)
        after = self.chronicle.tell(key, job.view, after, seen)
        later = None if hindered else self._may_wait(key, job.view, after)
        after = job.view.status if later else after
        caught_up = await self._write_status(key, job.view, after, now)
        if caught_up and is_finished(after.conditions):
            await self._finish(here, after)
        if trouble is not None:
            return self._outcome(job.view.metadata, trouble, left)
        return _again(left, later, here.later) if caught_up else _again(CATCH_UP_SECONDS)

    async def _ensure(
        self, here: Situation, after: TrainJobStatus, now: datetime
    ) -> tuple[TrainJobStatus, Exception | None]:
        """Apply the objects; return the status, Failed if they can never exist, and an error to raise later if any."""
        try:
            news = await self._objects.ensure(here)
        except TerminalError as error:
            return fail(after, error.reason, str(error), now), None
        except Exception as error:  # noqa: BLE001 the status is written all the same, then this is raised
            return after, error
        self._record(here.meta, (news,) if news else ())
        return after, None

    async def _observe(
        self, key: Key, job: TrainJob, jobset: SeenJobSet | None, seen: Sighting, now: datetime
    ) -> TrainJobStatus | RequeueAfter:
        """Return the status by JobSet and pods, or when to look again if these are not caught up."""
        observed = observe(job, jobset.status if jobset else None, now)
        ends = is_finished(observed.conditions) and not is_finished(job.status.conditions)
        if ends and jobset is not None and not await self._mirrors.confirms_end(key, jobset):
            return RequeueAfter(CATCH_UP_SECONDS)
        after = await self._witness.testify(key, job, observed, seen)
        if after is None:
            return RequeueAfter(EARLY_SECONDS)
        if jobset is None or is_finished(job.status.conditions):
            return after
        return msgspec.structs.replace(after, restarts=max(after.restarts, jobset.attempt))

    async def _next_attempt(
        self, key: Key, job: Document[TrainJob], after: TrainJobStatus, jobset: SeenJobSet | None, seen: Sighting
    ) -> recovery.Restart | recovery.Refusal | None:
        """Return the decision about the next attempt; None if the present one has not ended, or ended well.

        Where the CRD drops `status.restarts`, nothing could be decided by it, and a TrainJob ends as its JobSet does.
        """
        if jobset is None or self._prunes or is_finished(job.view.status.conditions):
            return None
        restart = recovery.after_disruption(job.view, after, jobset, seen)
        if restart is not None or not is_true(after.conditions, names.FAILED):
            return restart
        limit = await self._objects.max_restarts(self._objects.meet(key, job, jobset))
        return recovery.after_fault(job.view, after, jobset, seen, limit)

    async def _decide_restart(
        self, key: Key, job: Document[TrainJob], restart: recovery.Restart, after: TrainJobStatus, now: datetime
    ) -> Result:
        """Write that a TrainJob restarts; its JobSet is deleted once the mirror shows that."""
        after = recovery.restarted(after, restart)
        after, left = self._doom(job.view, after, now)
        after = with_phase(job.view, after, Sighting(restarts=after.restarts))
        after = self.chronicle.tell(key, job.view, after, Sighting())
        if not await self._write_status(key, job.view, after, now):
            return _again(CATCH_UP_SECONDS)
        if not is_finished(after.conditions):
            self._record(job.view.metadata, (events.restarting(after.restarts, restart.reason),))
        return _again(CATCH_UP_SECONDS, left)

    async def _restart(self, key: Key, job: Document[TrainJob], jobset: SeenJobSet, now: datetime) -> Result:
        """Delete the JobSet of an earlier attempt; the present one gets its own when that is gone."""
        observed = observe(job.view, msgspec.structs.replace(jobset.status, conditions=None), now)
        after, left = self._doom(job.view, recovery.without_progress(observed), now)
        after = with_phase(job.view, after, Sighting(restarts=after.restarts))
        trouble: Exception | None = None
        try:
            await self._objects.delete_outdated(self._objects.meet(key, job, jobset))
        except Exception as error:  # noqa: BLE001 the status is written all the same, then this is raised
            trouble = error
        caught_up = await self._write_status(key, job.view, self.chronicle.tell(key, job.view, after, Sighting()), now)
        if trouble is not None:
            return self._outcome(job.view.metadata, trouble, left)
        return _again(left) if caught_up else _again(CATCH_UP_SECONDS)

    async def _let_queue(self, key: Key, job: TrainJob) -> None:
        """Let a TrainJob that waited for another into its queue, if it may by now; the write is then pending."""
        if not (is_finished(job.status.conditions) or self._job_writes.pending(key)):
            written = await self.after.open(job)
            if written is not None:
                self._job_writes.note(key, written.metadata.resource_version)

    def _doom(self, job: TrainJob, after: TrainJobStatus, now: datetime) -> tuple[TrainJobStatus, float | None]:
        """Return the status, Failed if it is past its deadline or waits for one that failed; and what time is left."""
        left = deadline.seconds_left(job, after.conditions, now)
        if left is not None and left <= 0:
            return fail(after, names.REASON_DEADLINE_EXCEEDED, deadline.message(job), now), None
        if not is_finished(after.conditions) and (impossible := self.after.failure(job)):
            return fail(after, names.REASON_EARLIER_FAILED, impossible, now), None
        return after, left

    async def _tell_dispatched(self, key: Key, job: TrainJob) -> Result:
        """Write the phase of a TrainJob that MultiKueue dispatches, by what Kueue brings of its worker; nothing else.

        Kueue knows no phases, and its patches of the status leave alone what it does not know.
        """
        if self._job_writes.pending(key):
            return RequeueAfter(CATCH_UP_SECONDS)
        after = with_phase(job, job.status, Sighting())
        return _again(None if await self._write_status(key, job, after, self.clock.now()) else CATCH_UP_SECONDS)

    def _may_wait(self, key: Key, job: TrainJob, after: TrainJobStatus) -> float | None:
        """Return how long a change of status is put off; None to write it now, or if there is none."""
        patience = 0.0 if job.status == after else status.patience(job, after)
        if not patience:
            self._waits.pop(key, None)
            return None
        now = self.clock.monotonic()
        kept, since = self._waits.get(key, (patience, now))
        if patience < kept:
            since = now
        self._waits[key] = (patience, since)
        unhurried = patience == status.UNHURRIED_SECONDS
        if now - since >= (BUSY_SECONDS if unhurried and self.busy() else patience):
            del self._waits[key]
            return None
        return max(since + patience - now, LEAST_SECONDS)

    def _tell_scheduled(self, key: Key, job: TrainJob, after: TrainJobStatus, seen: Sighting) -> None:
        """Tell once that every pod has a machine, unless it is over, or they have long been ready: it was told then."""
        counts, uid = seen.counts, job.metadata.uid
        if not counts.wanted or counts.scheduled < counts.wanted or self._scheduled.get(key) == uid:
            return
        self._scheduled[key] = uid
        if not (is_finished(after.conditions) or ready_jobs(job.status.jobs_status)):
            self._record(job.metadata, (events.scheduled(counts.wanted),))

    def _tell_faults(self, job: TrainJob, after: TrainJobStatus) -> None:
        """Tell of a fault with the pod as its subject, where people look who see a pod gone wrong."""
        fault = after.first_fault
        if fault is None or fault == job.status.first_fault or not fault.pod:
            return
        pod = ObjectReference(
            "v1",
            "Pod",
            fault.pod,
            job.metadata.namespace,
            self.stores.pods.uid(Key(job.metadata.namespace, fault.pod)) or "",
        )
        self.recorder.record(pod, "Warning", fault.cause, faults.sentence(fault))

    def _outcome(self, job: ObjectMeta, trouble: Exception, left: float | None) -> Result:
        """Return what follows from an error; the deadline comes in time all the same."""
        if isinstance(trouble, EarlierSelfError):
            return _again(EARLIER_SELF_SECONDS, left)
        if isinstance(trouble, BehindError):
            return _again(CATCH_UP_SECONDS, left)
        self._record(job, (events.creation_failed(trouble),), action=RECONCILING)
        if left is None:
            raise trouble
        return Failed(trouble, within=left)

    def _jobset_of(self, key: Key, job: ObjectMeta) -> tuple[SeenJobSet | None, Exception | None]:
        """Return the TrainJob's JobSet if it has one; and what is in the way if the name is another's."""
        jobset = self.stores.job_set(key)
        if jobset is None:
            return None, None
        try:
            check_owner(JOB_SETS.kind, jobset.meta, job)
        except OperatorError as error:
            return None, error
        return jobset, None

    async def _write_status(self, key: Key, before: TrainJob, after: TrainJobStatus, now: datetime) -> bool:
        """Write the status if it changed, and tell what that means; False if the mirror was behind."""
        self._tell_late(key, before)
        patch = status.merge_patch(before, after)
        if patch is None or (self._prunes and (patch["status"] or {}).keys() <= status.ADDED):
            return True
        try:
            written = await self.writer.patch(TRAIN_JOBS, key, patch, subresource="status")
        except KubeError as error:
            if error.in_doubt:
                self._untold[key] = before, after
            if isinstance(error, NotFoundError):
                return True  # deleted meanwhile
            if isinstance(error, ConflictError):
                return False
            raise
        self._untold.pop(key, None)
        self._job_writes.note(key, written.metadata.resource_version)
        self._notice_pruning(after.runtime_digest, written.status.runtime_digest)
        self._record(before.metadata, events.of_change(before.status, after))
        self._tell_faults(before, after)
        if events.has_started(before.status, after):
            self._time_start(key, before.metadata, now)
        return True

    def _tell_late(self, key: Key, job: TrainJob) -> None:
        """Tell what a write meant whose answer was lost, once the mirror shows it: nobody told.

        A conflict alone is no sign of one: a mirror that is old asks for what we, or an earlier leader, wrote and told.
        """
        was, wrote = self._untold.get(key, (job, job.status))
        if was.metadata.resource_version == job.metadata.resource_version:
            return
        del self._untold[key]
        if was.metadata.uid == job.metadata.uid and _essence(job.status) == _essence(wrote):
            self._record(job.metadata, events.of_change(was.status, wrote))

    def _notice_pruning(self, sent: str, stored: str) -> None:
        """Log once if the CRD that is installed does not know digests: then each is proved anew after a restart."""
        if not sent:
            return  # a status without a digest tells nothing of the CRD
        pruned = sent != stored
        if pruned and not self._prunes:
            log.warning("the TrainJob CRD does not know status.runtimeDigest: install the CRDs of this release")
        self._prunes = pruned

    def _time_start(self, key: Key, job: ObjectMeta, now: datetime) -> None:
        """Measure a TrainJob's first start; a later one, after a stop, says nothing about how long creation took."""
        if job.creation_timestamp is not None and self._started.get(key) != job.uid:
            self._started[key] = job.uid
            self.metrics.started((now - job.creation_timestamp).total_seconds())

    def _forget(self, key: Key) -> None:
        self._objects.forget(key)
        self._witness.forget(key)
        self._started.pop(key, None)
        self._waits.pop(key, None)
        self._scheduled.pop(key, None)

    async def _finish(self, here: Situation, after: TrainJobStatus) -> None:
        """Let the JobSet of a TrainJob that is over go: at once if we failed it, else when its runtime says."""
        if not is_stopped(after.conditions):
            await self._objects.let_expire(here)
        elif here.jobset is not None:
            await self._stop(here, here.jobset.meta)
        elif not is_finished(here.job.view.status.conditions) and (unseen := await self._mirrors.find_unseen(here)):
            await self._stop(here, unseen)

    async def _stop(self, here: Situation, jobset: Meta) -> None:
        """Delete the JobSet; an error is raised and so retried, for its pods hold what others wait for."""
        if jobset.deletion_timestamp is not None or not await self._mirrors.is_over(here):
            return
        try:
            await self.writer.delete(JOB_SETS, here.key, jobset.uid)
        except (NotFoundError, ConflictError):
            return  # gone, or another of its name has come, of which the mirror will tell

    def _record(self, job: ObjectMeta, news: Iterable[events.EventContent], *, action: str = "") -> None:
        for one in news:
            self.recorder.record(_reference(job), one.type, one.reason, one.message, action=action)


def _essence(one: TrainJobStatus) -> tuple[object, object]:
    """Return what news is about: conditions, since when, and counts."""
    return [status.written(each) for each in one.conditions], one.jobs_status


def _reference(job: ObjectMeta) -> ObjectReference:
    return ObjectReference(names.API_VERSION, names.TRAIN_JOB, job.name, job.namespace, job.uid)


def _again(*seconds: float | None) -> Result:
    """Return when to look again: the first of some times, if there is any."""
    times = [one for one in seconds if one is not None]
    return RequeueAfter(min(times)) if times else DONE
