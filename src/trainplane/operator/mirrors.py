"""Mirrors, judged by the API server where to act on an old one would do harm.

    a JobSet is made, stopped, resumed      the TrainJob is as it was mirrored, and there is no JobSet that was not
    a JobSet is changed                     it is the one that was mirrored
    an end is told                          the JobSet has ended so
    a TrainJob is stopped at its deadline   there is no JobSet that was not mirrored
    a JobSet goes                           the TrainJob's end is told

A follower whose watches fell silent may become the leader, and a server may be restored to what it was an hour ago:
what either would do was right a while ago. A mirror that has just heard from the API server is as good as a read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from trainplane.kube.client import TREE
from trainplane.kube.errors import NotFoundError
from trainplane.lifecycle.conditions import is_finished
from trainplane.operator.errors import BehindError
from trainplane.operator.stores import JobSet, Standing, Written
from trainplane.resources import JOB_SETS, TRAIN_JOBS

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.resource import Key, Resource
    from trainplane.kube.store import Store
    from trainplane.operator.situation import Situation
    from trainplane.operator.stores import Meta, SeenJobSet

T = TypeVar("T")

FRESH_SECONDS: Final = 2.0
"""How lately a mirror must have heard from the API server to be believed without a read of its own."""


@dataclass(frozen=True)
class Mirrors:
    """The mirrors of TrainJobs and JobSets, and the API server that they are judged by."""

    client: Client
    train_jobs: Store
    job_sets: Store
    clock: Clock

    async def check(self, here: Situation) -> None:
        """See that the mirrors are not old, before a JobSet is made, stopped or resumed that may be there and run.

        That a TrainJob seems to begin now proves nothing: it may have been deleted, and its snapshot with it; and of
        one in a queue the place may have changed, which nobody would find later: a JobSet that is younger than a patch
        passes for made with it. Only that it has no JobSet needs no read then.

        Raises:
            BehindError: they are.
        """
        key, jobset = here.key, here.jobset
        if jobset is not None and jobset.suspended == here.job.view.spec.suspend:
            return
        await self.check_train_job(here)
        if jobset is None and not here.is_new and await self._find(JOB_SETS, key, Written) is not None:
            raise BehindError(f"JobSet {key} is there and was not mirrored")

    async def check_train_job(self, here: Situation) -> None:
        """Raise BehindError if a TrainJob is not as it was mirrored; its end leaves its generation as it was."""
        key = here.key
        if self._is_fresh(self.train_jobs):
            return
        job = await self._find(TRAIN_JOBS, key, Standing)
        if job is None:
            raise BehindError(f"TrainJob {key} is gone")
        if (job.metadata.uid, job.metadata.generation) != (here.meta.uid, here.meta.generation):
            raise BehindError(f"TrainJob {key} is not as it was mirrored")
        if is_finished(job.status.conditions):
            raise BehindError(f"TrainJob {key} is over, and its mirror does not say so")

    async def find_live(self, key: Key) -> Tree | None:
        """Return the JobSet that there is."""
        return await self._find(JOB_SETS, key, TREE)

    async def live(self, key: Key, jobset: SeenJobSet) -> Tree:
        """Return a JobSet as it is; raises BehindError if its mirror shows another."""
        live = await self.find_live(key)
        if live is None:
            raise BehindError(f"JobSet {key} is gone")
        meta = live["metadata"]
        if (meta["uid"], meta.get("generation", 0)) != (jobset.meta.uid, jobset.meta.generation):
            raise BehindError(f"JobSet {key} is not as it was mirrored")
        return live

    async def confirms_end(self, key: Key, jobset: SeenJobSet) -> bool:
        """Return whether a JobSet's end is as its mirror shows it, before it is told.

        A restored server may have undone it, and the training goes on: the mirror of TrainJobs may show that before
        the one of JobSets does. Of a JobSet that is gone, what was last seen of it holds.
        """
        if self._is_fresh(self.job_sets):
            return True
        live = await self._find(JOB_SETS, key, JobSet)
        return live is None or (live.metadata.uid, live.status) == (jobset.meta.uid, jobset.status)

    async def find_unseen(self, here: Situation) -> Meta | None:
        """Return the JobSet of a TrainJob that is stopped, if its mirror has none, may be old, and it is there.

        A restored server has it again, and would begin its next attempt before the mirror shows it.
        """
        if self._is_fresh(self.job_sets):
            return None
        found = await self._find(JOB_SETS, here.key, Written)
        controller = None if found is None else found.metadata.controller
        return found.metadata if found and controller and controller.uid == here.meta.uid else None

    async def is_over(self, here: Situation) -> bool:
        """Return whether a TrainJob's end is told, as its mirror shows or we have just written, before its JobSet goes.

        A restored backup may have the JobSet and not the TrainJob's end: a JobSet that went would be made again, for
        nothing else says that the training is over.
        """
        if self._is_fresh(self.train_jobs) or not is_finished(here.job.view.status.conditions):
            return True
        job = await self._find(TRAIN_JOBS, here.key, Standing)
        return job is not None and job.metadata.uid == here.meta.uid and is_finished(job.status.conditions)

    async def _find(self, resource: Resource, key: Key, type_: type[T]) -> T | None:
        """Return an object as it is now, None if it is gone."""
        try:
            return await self.client.get(resource, key.name, key.namespace, type_=type_)
        except NotFoundError:
            return None

    def _is_fresh(self, mirror: Store) -> bool:
        """Return whether a mirror has just heard from the API server."""
        return self.clock.monotonic() - mirror.heard_at <= FRESH_SECONDS
