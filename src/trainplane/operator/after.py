"""TrainJobs that begin after another: the gate that keeps one out of its queue, opened when the other is complete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.api.errors import DecodeError
from trainplane.api.meta import is_true
from trainplane.kube.errors import ConflictError, NotFoundError
from trainplane.kube.resource import Key
from trainplane.lifecycle.after import awaited, failure, opened
from trainplane.operator.stores import followers
from trainplane.resources import TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.api.meta import Condition
    from trainplane.api.trainjob import TrainJob
    from trainplane.kube.store import Change
    from trainplane.operator.apply import Writer
    from trainplane.operator.stores import Stores, Written


@dataclass(frozen=True, slots=True)
class After:
    """Looks at what a TrainJob waits for. One that is not there may still come."""

    stores: Stores
    writer: Writer

    def followers(self, change: Change) -> Iterable[Key]:
        """Map a TrainJob that changed to those that wait for it."""
        return self.stores.train_jobs.by_index("after", followers(change.key.namespace, change.key.name))

    def failure(self, job: TrainJob) -> str:
        """Return why a TrainJob can never begin; empty if it may, or if it was let run without waiting."""
        earlier = awaited(job.metadata.annotations) if job.spec.suspend else ""
        return failure(earlier, self._conditions(job)) if earlier else ""

    async def open(self, job: TrainJob) -> Written | None:
        """Let a TrainJob into its queue if the one before it is complete; returns what was written, if anything.

        Bound to the version that was looked at: another's gate that comes or goes meanwhile stays as it is.
        """
        meta = job.metadata
        if not awaited(meta.annotations) or not is_true(self._conditions(job), names.COMPLETE):
            return None
        gates = {names.ANNOTATION_ADMISSION_GATES: opened(meta.annotations)}
        patch = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version, "annotations": gates}}
        try:
            return await self.writer.patch(TRAIN_JOBS, Key(meta.namespace, meta.name), patch)
        except (NotFoundError, ConflictError):
            return None  # gone, or changed: of which the mirror will tell

    def _conditions(self, job: TrainJob) -> Iterable[Condition]:
        try:
            earlier = self.stores.train_job(Key(job.metadata.namespace, awaited(job.metadata.annotations)))
        except DecodeError:
            return ()
        return () if earlier is None else earlier.view.status.conditions
