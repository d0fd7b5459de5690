"""Reconciles one job of an older kind; safe to repeat after a crash at any write.

    read        the job and what it controls, from the mirrors, once they show our own last writes
    decide      what follows (`legacy.decide`): pure; nothing of what others manage
    make        objects that go, objects that come (`making`)
    write       one write of status, and the Events of what changed
    expire      a job whose time to live is over is deleted

What is decided follows from what is seen alone, so a crash between any two writes is made good by the next look. The
status is written although something could not be made, and the trouble is told and tried again.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from trainplane.api import document
from trainplane.api.errors import DecodeError
from trainplane.api.meta import ObjectMeta
from trainplane.kube.controller import DONE, Failed, RequeueAfter, Terminal
from trainplane.kube.errors import ConflictError, NotFoundError
from trainplane.kube.events import ObjectReference
from trainplane.kube.expectations import Expectations
from trainplane.legacy.news import of_made
from trainplane.lifecycle.events import EventContent
from trainplane.operator.budget import Budget
from trainplane.operator.errors import BehindError, BudgetError, EarlierSelfError, MakingError
from trainplane.operator.legacy.making import Making
from trainplane.operator.legacy.statuses import merge_patch
from trainplane.resources import LEGACY_JOBS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trainplane.api.legacy.kinds import Kind
    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.controller import Result
    from trainplane.kube.eventmerger import Recorder
    from trainplane.kube.resource import Key
    from trainplane.legacy.decision import Decision, Observed, Settings
    from trainplane.operator.apply import Writer
    from trainplane.operator.legacy.metrics import JobMetrics
    from trainplane.operator.legacy.mirrors import Mirrors

    Decide: TypeAlias = Callable[[Kind, Observed, Settings], Decision]

log = logging.getLogger(__name__)

CATCH_UP_SECONDS: Final = 1.0
"""When to look again if a mirror is behind our last write, or the truth; the watch brings it, and the key, sooner."""

LEAST_SECONDS: Final = 0.2
"""The shortest wait for what time brings: an end that is due shows in the mirror a moment later."""

NEWS_SECONDS: Final = 0.2
"""How long news of a job's objects may wait for more: a hundred pods start within a second."""
REST: Final = 5.0
"""How many times as long as a look took the next waits, for news alone: a job of thousands of pods takes a third of a
second to look at, and each of its pods has news; others have their turn meanwhile."""

RECONCILING: Final = "Reconciling"
"""The action of Events about what is in the way."""


@dataclass
class LegacyJobReconciler:
    """Makes jobs of one kind run. Everything it needs is handed to it; it keeps only what spares it work."""

    kind: Kind
    mirrors: Mirrors
    client: Client
    writer: Writer
    recorder: Recorder
    metrics: JobMetrics
    clock: Clock
    settings: Settings
    decide: Decide

    def __post_init__(self) -> None:
        self._resource = LEGACY_JOBS[self.kind.name]
        self._jobs = self.mirrors.jobs[self.kind.name]
        self._making = Making(self.kind, self.client, self.writer, self.mirrors, self.clock)
        self._job_writes = Expectations(self._jobs, self.clock)
        self._told: dict[Key, frozenset[EventContent]] = {}
        """The news of the last look."""
        self._took: dict[Key, float] = {}
        """Seconds that the last look took, of jobs that take long."""

    async def reconcile(self, key: Key) -> Result:
        """Reconcile one job. Safe to repeat after a crash at any write."""
        entry = self._jobs.entry(key)
        if entry is None:
            self._forget(key)
            return DONE
        try:
            job: Tree = document.decode_tree(entry.data)
            meta = document.view(job["metadata"], ObjectMeta)
        except DecodeError as error:  # stored under a schema that we do not know; nothing becomes right by itself
            self._record(ObjectMeta(name=key.name, namespace=key.namespace, uid=entry.uid), [_unreadable(error)])
            return Terminal(error)
        if self._job_writes.pending(key) or self._making.pending(key):
            return RequeueAfter(CATCH_UP_SECONDS)
        return await self._reconcile(key, meta, job)

    def patience(self, key: Key) -> float:
        """Return for how long news of a job's objects may wait for more."""
        return max(NEWS_SECONDS, REST * self._took.get(key, 0.0))

    async def _reconcile(self, key: Key, meta: ObjectMeta, job: Tree) -> Result:
        try:
            decision = self._look(key, meta, job)
        except BudgetError as error:
            self._record(meta, [_unreadable(error)])
            return Terminal(error)
        trouble: Exception | None = None
        try:
            await self._making.carry_out(key, meta, decision)
        except Exception as error:  # noqa: BLE001 the status is written all the same, then this is raised
            trouble = error
        else:
            self._record(meta, of_made(decision))
        caught_up = await self._write_status(key, job, decision)
        if caught_up:
            self._tell(key, meta, decision.events)
        if trouble is not None:
            return self._outcome(meta, trouble, decision.again)
        if not caught_up:
            return RequeueAfter(CATCH_UP_SECONDS)
        if decision.expired:
            await self._expire(key, meta)
        return DONE if decision.again is None else RequeueAfter(max(decision.again, LEAST_SECONDS))

    def _look(self, key: Key, meta: ObjectMeta, job: Tree) -> Decision:
        """Return what follows from how a job is now."""
        began = self.clock.monotonic()
        with Budget(f"{self.kind.name} {key}"):
            seen = self._making.as_left(key, meta.uid, self.mirrors.observe(job, key, meta.uid, self.clock.now()))
            decision = self.decide(self.kind, seen, self.settings)
        self._took.pop(key, None)
        if (took := self.clock.monotonic() - began) * REST > NEWS_SECONDS:
            self._took[key] = took
        return decision

    async def _write_status(self, key: Key, job: Tree, decision: Decision) -> bool:
        """Write the status if it changed; False if the mirror was behind."""
        patch = None if decision.status is None else merge_patch(job, decision.status)
        if patch is None or decision.status is None:
            return True
        try:
            written = await self.writer.patch(self._resource, key, patch, subresource="status")
        except NotFoundError:
            return True  # deleted meanwhile
        except ConflictError:
            return False
        self._job_writes.note(key, written.metadata.resource_version)
        self.metrics.changed(self.kind, job, decision.status)
        return True

    async def _expire(self, key: Key, meta: ObjectMeta) -> None:
        try:
            await self.writer.delete(self._resource, key, meta.uid)
        except (NotFoundError, ConflictError):
            return  # gone, or another of its name has come

    def _outcome(self, meta: ObjectMeta, trouble: Exception, again: float | None) -> Result:
        """Return what follows from an error; what time alone brings comes in time all the same."""
        if isinstance(trouble, EarlierSelfError | BehindError):
            return RequeueAfter(CATCH_UP_SECONDS if again is None else min(CATCH_UP_SECONDS, again))
        if isinstance(trouble, MakingError):
            self._record(meta, [_hindered(trouble)], action=RECONCILING)
        if again is None:
            raise trouble
        return Failed(trouble, within=again)

    def _tell(self, key: Key, meta: ObjectMeta, news: tuple[EventContent, ...]) -> None:
        """Tell what is new; what was news at the last look too goes on, and was told."""
        told = self._told.pop(key, frozenset())
        self._record(meta, (one for one in news if one not in told))
        if news:
            self._told[key] = frozenset(news)

    def _record(self, meta: ObjectMeta, news: Iterable[EventContent], *, action: str = "") -> None:
        regarding = ObjectReference(self.kind.api_version, self.kind.name, meta.name, meta.namespace, meta.uid)
        for one in news:
            self.recorder.record(regarding, one.type, one.reason, one.message, action=action)

    def _forget(self, key: Key) -> None:
        if self._making.forget(key):
            self.metrics.deleted(self.kind, key.namespace)
        self._told.pop(key, None)
        self._took.pop(key, None)


def _unreadable(error: Exception) -> EventContent:
    return EventContent("Warning", "NotUnderstood", f"the job cannot be looked at: {error}")


def _hindered(error: MakingError) -> EventContent:
    """Tell what could not be made, under the reason that training-operator has for it."""
    return EventContent("Warning", f"FailedCreate{error.kind}", str(error))
