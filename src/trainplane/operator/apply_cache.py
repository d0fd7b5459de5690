"""In-memory cache of TrainJobs whose objects are already applied: rendering is skipped until something changes.

A TrainJob is reconciled whenever anything about it or its JobSet changes, often a count in a status. Its objects follow
from its spec and its runtime alone, so they are rendered again only when spec, labels or annotations of the TrainJob
changed, or somebody touched the JobSet, or the JobSet makes all its pods anew. Empty after a restart, when each
unfinished TrainJob is rendered once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from trainplane.api.meta import ObjectMeta
    from trainplane.kube.resource import Key
    from trainplane.operator.stores import Meta, SeenJobSet


class Look(msgspec.Struct, frozen=True, gc=False):
    """How a TrainJob and its JobSet looked when the objects were as they should."""

    job_uid: str
    touched: int
    jobset_uid: str
    jobset_touched: int
    restarts: int
    digest: str
    """Of the runtime; its status gets it with the first counts, until then nobody else knows it."""


class ApplyCache:
    """The TrainJobs that are settled, by key. Small: six atoms each, and none for finished ones."""

    def __init__(self) -> None:
        self._looks: dict[Key, Look] = {}

    def __len__(self) -> int:
        return len(self._looks)

    def note(self, key: Key, job: ObjectMeta, jobset: Meta, digest: str, restarts: int = 0) -> None:
        """Remember that the objects of a TrainJob are as they should, with this JobSet, from a runtime of a digest."""
        self._looks[key] = _look(job, jobset, digest, restarts)

    def holds(self, key: Key, job: ObjectMeta, jobset: SeenJobSet | None) -> bool:
        """Return whether nothing was touched since."""
        look = self._looks.get(key)
        if look is None or jobset is None:
            return False
        return look == _look(job, jobset.meta, look.digest, jobset.status.restarts)

    def digest(self, key: Key, job: ObjectMeta) -> str:
        """Return the digest of the runtime that a TrainJob was last rendered from; empty if that is not known."""
        look = self._looks.get(key)
        return look.digest if look is not None and look.job_uid == job.uid else ""

    def forget(self, key: Key) -> None:
        """Forget a TrainJob that is finished or gone."""
        self._looks.pop(key, None)


def _look(job: ObjectMeta, jobset: Meta, digest: str, restarts: int) -> Look:
    return Look(job.uid, _touched(job), jobset.uid, _touched(jobset), restarts, digest)


def _touched(meta: ObjectMeta | Meta) -> int:
    """Return a number that changes with what a person may change: spec, labels and annotations, not status."""
    return hash((meta.generation, *sorted(meta.annotations.items()), "", *sorted(meta.labels.items())))
