"""The timelines of TrainJobs, kept without a request of their own.

What is new of a timeline is remembered until the status is written for another reason, at the latest with the end, and
goes with it. An operator that goes takes along what it remembered; the next one reads it from the same pods again, but
for when a training first reported, which its history still tells.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from trainplane.kube.errors import DecodeError
from trainplane.lifecycle import timeline
from trainplane.lifecycle.conditions import is_finished

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from trainplane.api.trainjob import Milestone, TrainJob, TrainJobStatus
    from trainplane.kube.clock import Clock
    from trainplane.kube.projection import Entry
    from trainplane.kube.resource import Key
    from trainplane.kube.store import Change
    from trainplane.operator.witness import Sighting


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    trainer_status: dict[str, Any] | None = None


class _Seen(msgspec.Struct, frozen=True):
    status: _Status | None = None


class _Known(NamedTuple):
    """What is known of a TrainJob's timeline."""

    uid: str
    written: Sequence[Milestone]
    """What its status had when it was last looked at."""
    told: Sequence[Milestone]
    """And with what was new then."""


@dataclass
class Chronicle:
    """Remembers what is not written yet of the timelines of TrainJobs that are not over."""

    clock: Clock
    _known: dict[Key, _Known] = field(default_factory=dict)
    _stepped: dict[Key, datetime] = field(default_factory=dict)
    """When a TrainJob was seen to report for the first time."""

    def tell(self, key: Key, job: TrainJob, after: TrainJobStatus, seen: Sighting) -> TrainJobStatus:
        """Return the status with the timeline, if there is other news to write; it is remembered if there is not."""
        if is_finished(job.status.conditions):
            self.forget(key)
            return after
        kept = self._kept(key, job)
        attempt = seen.attempt(with_pods=timeline.lacks(kept, seen.restarts))
        told = timeline.extend(kept, job, after, attempt, self.clock.now())
        self._known[key] = _Known(job.metadata.uid, job.status.timeline, told)
        return after if after == job.status else msgspec.structs.replace(after, timeline=told)

    def _kept(self, key: Key, job: TrainJob) -> Sequence[Milestone]:
        """Return the timeline as it was last known; another leader may have written one meanwhile."""
        known, written = self._known.get(key), job.status.timeline
        if known is None or known.uid != job.metadata.uid:
            kept: Sequence[Milestone] = written
        else:
            kept = known.told if known.written == written else timeline.merge(written, known.told)
        step = self._stepped.get(key)
        if step is None or timeline.FIRST_STEP in timeline.stage_names(kept):
            return kept
        return timeline.merge(kept, timeline.milestone(timeline.FIRST_STEP, step))

    def changed(self, change: Change) -> None:
        """Take in a change of the TrainJob store: the first report of progress, and TrainJobs that are gone."""
        key = change.key
        if change.new is None:
            self.forget(key)
        elif change.old is None or key in self._stepped:
            return
        elif _reports(change.new) and not _reports(change.old):
            self._stepped[key] = self.clock.now()

    def forget(self, key: Key) -> None:
        """Forget a TrainJob that is finished or gone."""
        self._known.pop(key, None)
        self._stepped.pop(key, None)


def _reports(entry: Entry) -> bool:
    try:
        status = entry.decode(_Seen).status
    except DecodeError:
        return False
    return status is not None and status.trainer_status is not None
