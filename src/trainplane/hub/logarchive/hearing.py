"""Hears what the operators of the fleet tell of TrainJobs (`testimony`), and keeps the last of it with their logs.

Of jobs of other kinds they tell nothing but the status that Kueue copies.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from trainplane.hub.errors import HubError
from trainplane.hub.kinds import TRAIN_JOB, kind_of
from trainplane.hub.logarchive import testimony
from trainplane.kube.resource import Key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.api.tree import Tree
    from trainplane.hub.kinds import JobKey
    from trainplane.hub.logarchive.archive import Archive
    from trainplane.hub.logarchive.jobs import Jobs
    from trainplane.hub.logarchive.judge import Judge
    from trainplane.hub.logarchive.keptjob import KeptJob
    from trainplane.hub.logarchive.mirror import Mirror
    from trainplane.hub.logarchive.testimony import Testimony

log = logging.getLogger(__name__)


class Hearing:
    """Knows what is told of each TrainJob; believes the worker alone to which Kueue sent it."""

    def __init__(self, jobs: Jobs, archive: Archive, judge: Judge, mirrors: Mapping[str, Mirror]) -> None:
        self._jobs = jobs
        self._archive = archive
        self._judge = judge
        self._mirrors = mirrors

    def told(self, job: Tree) -> Testimony:
        """Return what is told of a TrainJob: by its worker now, by itself if it runs here, or as last kept."""
        metadata = job["metadata"]
        now = self._by_worker(job, Key(str(metadata.get("namespace") or ""), metadata["name"])) or testimony.read(job)
        kept = self._archive.job(metadata["uid"])
        return now if now or kept is None else kept.record.told

    def changed(self, key: Key | JobKey) -> None:
        """A worker tells something new of a job: keep it, if anything is kept of that."""
        job = self._jobs.get(*key)
        kept = None if job is None else self._archive.job(job["metadata"]["uid"])
        if job is not None and kept is not None:
            self.keep(kept, job)

    def keep(self, kept: KeptJob, job: Tree) -> None:
        """Keep what is told of a TrainJob with its logs."""
        try:
            self._archive.tell(kept, self.told(job))
        except (HubError, OSError) as error:
            log.warning("what is told of a job cannot be kept", extra={"uid": kept.record.uid, "error": str(error)})

    def _by_worker(self, job: Tree, key: Key) -> Testimony | None:
        if kind_of(job) is not TRAIN_JOB:
            return None
        mirror = self._mirrors.get(self._jobs.place(job).cluster or "")
        found = None if mirror is None or mirror.copies is None else mirror.copies.get(key)
        if mirror is None or found is None or not self._judge.is_owner(mirror, found[0], job):
            return None
        return found[1]
