"""A TrainJob's objects: seen to be as they should, from the runtime that it began with.

    runtime     the one that has the recorded digest; if the TrainJob begins now, the one that there is, and it is kept
    keys        what plugins draw once, made or judged
    others      ConfigMaps and groups, applied
    JobSet      applied last, if it is absent, or it or the TrainJob is suspended; what runs is never changed
    expiry      given to the JobSet once its end is told

Nothing here tells a status; what goes wrong is raised, and what was learnt until then stands in the `Situation`.

What somebody deletes or changes meanwhile is made again, of a job that runs as of one that waits: what its watches tell
of (`lost`), what a first look after a start finds missing (`owned`), and keys that pods are about to mount (`keys`).
"""

from __future__ import annotations

import itertools
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.kube.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from trainplane.kube.expectations import Expectations
from trainplane.lifecycle import events
from trainplane.operator import ttl
from trainplane.operator.adoption import is_elsewhere, is_patched_since, with_fixed_parts_of
from trainplane.operator.apply import ApplyCache, applied_at, would_change
from trainplane.operator.budget import Budget
from trainplane.operator.errors import BehindError, BudgetError, OperatorError
from trainplane.operator.recreation import recreate
from trainplane.operator.situation import Situation
from trainplane.render.errors import RenderError
from trainplane.render.plugins.cache import Cache
from trainplane.render.plugins.output import Output
from trainplane.render.plugins.torchrun import Torchrun
from trainplane.render.plugins.trainjobstatus import TrainJobStatus
from trainplane.resources import JOB_SETS

if TYPE_CHECKING:
    from trainplane.api.document import Document
    from trainplane.api.trainjob import TrainJob
    from trainplane.api.tree import Tree
    from trainplane.kube.clock import Clock
    from trainplane.kube.resource import Key
    from trainplane.operator.apply import Writer
    from trainplane.operator.mirrors import Mirrors
    from trainplane.operator.others import Others
    from trainplane.operator.runtimes import Runtime
    from trainplane.operator.snapshot import Snapshots
    from trainplane.operator.stores import Meta, SeenJobSet
    from trainplane.render.pipeline import Pipeline, Rendering

log = logging.getLogger(__name__)

SETTLE_SECONDS: Final = 2.0
"""How long an edit of a TrainJob that is held back waits for the next one before it is applied to its JobSet."""


@dataclass
class Objects:
    """Makes the objects of TrainJobs, and remembers which need no second look."""

    mirrors: Mirrors
    writer: Writer
    snapshots: Snapshots
    pipeline: Pipeline
    clock: Clock
    others: Others

    def __post_init__(self) -> None:
        self._edited: dict[Key, float] = {}
        self._apply_cache = ApplyCache()
        self._writes = Expectations(self.mirrors.job_sets, self.clock)
        parts = (TrainJobStatus.name, Torchrun.name, Cache.name, Output.name)
        self._pipelines = {
            there: self.pipeline.without(*(name for name, has in zip(parts, there, strict=True) if not has))
            for there in itertools.product((False, True), repeat=len(parts))
        }
        """By whether a JobSet has what each of these plugins makes; each is made once, for resumes are many."""

    def pending(self, key: Key) -> bool:
        """Return whether the mirror has not shown our last write of a JobSet."""
        return self._writes.pending(key)

    def meet(self, key: Key, job: Document[TrainJob], jobset: SeenJobSet | None, *, mounts: bool = False) -> Situation:
        """Return a TrainJob's situation, with the digest that its status has, or we have in mind for it."""
        digest = job.view.status.runtime_digest or self._apply_cache.digest(key, job.view.metadata)
        return Situation(key, job, jobset, digest, mounts=mounts)

    def forget(self, key: Key) -> None:
        """Forget a TrainJob that is finished or gone."""
        self._apply_cache.forget(key)
        self._edited.pop(key, None)
        self.others.forget(key)

    async def ensure(self, here: Situation) -> events.EventContent | None:
        """See that the runtime is kept and the objects are as they should; returns the news of it, if any."""
        job, jobset = here.job, here.jobset
        is_first = jobset is not None and not self._apply_cache.knows(here.key, here.meta)
        self.others.notice(here, is_first=is_first)
        await self.others.restore_snapshot(here)
        if not here.needs_mending and self._apply_cache.holds(here.key, here.meta, jobset):
            return None
        if jobset is not None:
            if jobset.meta.deletion_timestamp is not None:
                return None  # it is made anew when this one is gone
            if not (job.view.spec.suspend or jobset.suspended):
                return await self._let_run(here, jobset, is_first=is_first)
            waits = job.view.spec.suspend and jobset.suspended and not here.lost
            if waits and self._may_change_again(here, jobset):
                return None
        rendering = self._render(here, await self._runtime(here))
        await self.mirrors.check(here)
        await self.others.make(here, rendering)
        body = rendering.jobset.tree
        if jobset is not None:
            await self._update(here, jobset, body)
            return None
        self._settle(here, await self._apply(here, ttl.held(body)))
        pods = sum(pod_set.replicas * pod_set.count for pod_set in rendering.plan.pod_sets)
        return events.created(here.key.name, pods, suspended=job.view.spec.suspend)

    def _may_change_again(self, here: Situation, jobset: SeenJobSet) -> bool:
        """Return whether an edit of what waits should wait too: Kueue patches a TrainJob and resumes it a moment later.

        Only of a JobSet that is as we left it; what it holds matters when it is resumed, and then it is applied.
        """
        if not self._apply_cache.left(here.key, here.meta, jobset):
            return False
        now = self.clock.monotonic()
        since = self._edited.setdefault(here.key, now)
        left = since + SETTLE_SECONDS - now
        if left <= 0:
            del self._edited[here.key]
            return False
        here.put_off(left)
        return True

    async def learn(self, here: Situation) -> Runtime | None:
        """Return the runtime of a TrainJob that does not need it to run, if that is known or can be found out."""
        try:
            return await self._runtime(here)
        except OperatorError as error:
            log.info("runtime not known", extra={"trainjob": str(here.key), "why": str(error)})
            return None

    async def let_expire(self, here: Situation) -> None:
        """Give the JobSet of a TrainJob whose end is told the time after which its runtime wants it removed."""
        jobset = here.jobset
        if jobset is None or jobset.expires or jobset.meta.deletion_timestamp is not None or not here.digest:
            return
        runtime = await self.learn(here)
        seconds = None if runtime is None else ttl.of(runtime)
        if seconds is None or not await self.mirrors.is_over(here):
            return
        patch = {"metadata": {"uid": jobset.meta.uid}, "spec": {ttl.FIELD: seconds}}
        try:
            written = await self.writer.patch(JOB_SETS, here.key, patch)
        except (NotFoundError, ConflictError):
            return  # gone, or another of its name has come
        self._writes.note(here.key, written.metadata.resource_version)

    async def max_restarts(self, here: Situation) -> int:
        """Return how often faults of a TrainJob are restarted, by the runtime that it began with."""
        runtime = await self.learn(here)
        return 0 if runtime is None else runtime.view.spec.max_restarts

    async def delete_outdated(self, here: Situation) -> None:
        """Delete a JobSet of an earlier attempt, and its pods before it: another one of its name is created then.

        Raises:
            BehindError: it is not as it was mirrored.
        """
        jobset = here.jobset
        if jobset is None or jobset.meta.deletion_timestamp is not None:
            return
        await self.mirrors.check_train_job(here)
        live = await self.mirrors.live(here.key, jobset)
        restarts = jobset.attempt - jobset.status.restarts + (trees.number(live, "status", "restarts") or 0)
        if restarts >= here.job.view.status.restarts:
            raise BehindError(f"JobSet {here.key} is not as it was mirrored")
        version = live["metadata"]["resourceVersion"]
        try:
            await self.writer.delete(JOB_SETS, here.key, jobset.meta.uid, last=True, version=version)
        except NotFoundError:
            return  # the mirror will show it
        except ConflictError as error:  # JobSet may just have restarted it itself
            raise BehindError(f"JobSet {here.key} is not as it was read: {error}") from error

    def _render(self, here: Situation, runtime: Runtime) -> Rendering:
        """Render a TrainJob; raises BudgetError, and RenderError also for more pods than one that begins may have.

        Pods of a JobSet that is there cannot be given containers, volumes, variables or a command: one that was made
        without progress or a sender of output, or by a release that left torchrun or a data cache to the TrainJob,
        stays without.
        """
        jobset = here.jobset
        pipeline = self.pipeline
        if jobset is not None:
            has = jobset.reports, jobset.has_master, jobset.has_cache, bool(jobset.sender)
            pipeline = self._pipelines[has]
        with Budget(f"TrainJob {here.key}"):
            rendering = pipeline.render(here.job, runtime, begins=jobset is None)
        recreate(rendering.jobset.tree, here.restarts_before)
        return rendering

    def _settle(self, here: Situation, jobset: Meta) -> None:
        restarts = 0 if here.jobset is None else here.jobset.status.restarts
        self._edited.pop(here.key, None)
        self._apply_cache.note(here.key, here.meta, jobset, here.digest, restarts)

    async def _let_run(self, here: Situation, jobset: SeenJobSet, *, is_first: bool) -> events.EventContent | None:
        """Leave alone what runs: it is never changed, and needs no runtime until it is stopped and resumed.

        But pods that are made anew mount the keys anew: with others than the first ones had, they fail to meet those
        that are left, and the JobSet restarts them all; without any, they would wait for ever. What was lost beside it
        is made again. And what was admitted anew is not what runs.
        """
        live = await self._patched_since(here, jobset)
        restarts = jobset.status.restarts > 0
        looks = restarts or live is not None or here.needs_mending or (is_first and jobset.has_others)
        runtime = await self.learn(here) if looks or not here.digest else None
        rendering = self._render_again(here, runtime, needed=restarts or live is not None) if looks else None
        if rendering is None:
            self.others.give_up(here)
        else:
            is_settled = self._apply_cache.holds(here.key, here.meta, jobset)
            await (self.others.make if restarts and not is_settled else self.others.mend)(here, rendering)
            body = rendering.jobset.tree
            if live is not None and is_elsewhere(live, body):
                return await self._stop_to_move(here, live, body)
        self._settle(here, jobset.meta)
        return None

    def _render_again(self, here: Situation, runtime: Runtime | None, *, needed: bool) -> Rendering | None:
        """Render a TrainJob that runs, if its runtime is known.

        Unless it is `needed`, one that cannot be rendered is left to run as whoever made it made it: the reference, or
        a release that took more.
        """
        try:
            return None if runtime is None else self._render(here, runtime)
        except (RenderError, BudgetError) as error:
            if needed:
                raise
            log.info("what was lost is not known", extra={"trainjob": str(here.key), "why": str(error)})
            return None

    async def _patched_since(self, here: Situation, jobset: SeenJobSet) -> Tree | None:
        """Return the JobSet as it is if the TrainJob's patches may have changed since it was applied."""
        patches = here.job.view.spec.runtime_patches
        if not is_patched_since(patches, jobset.meta.creation_timestamp):
            return None
        live = await self.mirrors.live(here.key, jobset)
        return live if is_patched_since(patches, applied_at(live, names.FIELD_MANAGER)) else None

    async def _stop_to_move(self, here: Situation, live: Tree, body: Tree) -> events.EventContent:
        """Suspend a JobSet that runs elsewhere than it should; it is resumed when its pods are gone."""
        await self.mirrors.check_train_job(here)
        stopped = {**body, "spec": {**live["spec"], "suspend": True}}
        await self._apply(here, _at(live["metadata"]["resourceVersion"], stopped))
        return events.moved(here.key.name)

    async def _runtime(self, here: Situation) -> Runtime:
        """Return the runtime that the TrainJob began with; if it begins now, as it is now."""
        job, jobset = here.job.view, here.jobset
        if here.digest:
            return await self.snapshots.recorded(job.metadata, job.spec.runtime_ref, here.digest)

        async def made_from(runtime: Runtime) -> bool:
            return jobset is not None and await self._is_made_from(here, jobset, runtime)

        kept = await self.snapshots.keep(job, None if jobset is None else made_from)
        here.digest, here.is_new = kept.digest, kept.is_new
        return kept.runtime

    async def _is_made_from(self, here: Situation, jobset: SeenJobSet, runtime: Runtime) -> bool:
        """Return whether a TrainJob's JobSet is just what a runtime makes of the TrainJob, suspended or not."""
        live = await self.mirrors.find_live(here.key)
        if live is None:
            return False
        try:
            body = self._render(here, runtime).objects[-1].tree
        except RenderError:
            return False
        suspend = (live.get("spec") or {}).get("suspend", False)
        wanted = ttl.held_as_in(live, {**body, "spec": {**body["spec"], "suspend": suspend}})
        return live["metadata"]["uid"] == jobset.meta.uid and not would_change(live, wanted, names.FIELD_MANAGER)

    async def _update(self, here: Situation, jobset: SeenJobSet, body: Tree) -> None:
        """Make a JobSet that is there as it should be."""
        version, suspend = jobset.meta.resource_version, body["spec"].get("suspend", False)
        if not suspend and jobset.is_active and is_elsewhere(await self.mirrors.live(here.key, jobset), body):
            return  # its pods go first; their end is news of this key
        if jobset.suspended == suspend:
            live = await self.mirrors.live(here.key, jobset)
            if not would_change(live, ttl.held_as_in(live, body), names.FIELD_MANAGER):
                self._settle(here, jobset.meta)
                return
            version = live["metadata"]["resourceVersion"]
        try:
            written = await self._apply(here, _at(version, ttl.held(body)))
        except (InvalidError, ForbiddenError) as refusal:
            log.info("jobset kept as it was made", extra={"jobset": str(here.key), "refusal": str(refusal)})
            live = await self.mirrors.live(here.key, jobset)
            kept = ttl.held(with_fixed_parts_of(live, body))
            if not would_change(live, kept, names.FIELD_MANAGER):
                self._settle(here, jobset.meta)
                return
            written = await self._apply(here, _at(live["metadata"]["resourceVersion"], kept))
        self._settle(here, written)

    async def _apply(self, here: Situation, body: Tree) -> Meta:
        """Apply a JobSet; raises BehindError if it is bound to a version that it no longer has."""
        try:
            written = await self.writer.apply(JOB_SETS, body)
        except ConflictError as error:
            raise BehindError(f"JobSet {here.key} is not as it was mirrored: {error}") from error
        self._writes.note(here.key, written.metadata.resource_version)
        return written.metadata


def _at(version: str, body: Tree) -> Tree:
    """Return a JobSet that is applied only if it still has a version."""
    return {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
