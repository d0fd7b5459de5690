"""How much is kept and for how long: what an admin decides, and what has to go by it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of what is kept."""

    job_bytes: int = 256 << 20
    """Bytes of one TrainJob, all pods together; past it the oldest lines of its longest log go. 256 MiB is some
    million lines."""
    total_bytes: int = 8 << 30
    """Bytes of all; past it the jobs that finished first go. 8 GiB fits the volume of 10 GiB that the manifests ask
    for, with room for what comes in between two looks."""
    seconds: float = 14 * 86400.0
    """Seconds after its finish that a job is kept: two weeks, a holiday and the time to look."""
    deleted_seconds: float = 3600.0
    """Seconds after its TrainJob was deleted that a job is kept: an hour, enough to regret it and too short for a
    namesake's owner to find it."""

    def segment_bytes(self, logs: int) -> int:
        """Return how long a segment may get in a job with so many logs: an eighth of a fair share, within reason."""
        share = min(self.job_bytes // (8 * max(1, logs)), self.total_bytes // 64)
        return max(16 << 10, min(4 << 20, share))


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a TrainJob itself. Times are seconds since 1970, of the hub's clock."""

    uid: str
    namespace: str
    name: str
    seen: float
    """When we first kept something of it."""
    finished: float | None = None
    deleted: float | None = None


def expired(records: Iterable[JobRecord], bounds: Bounds, now: float) -> list[JobRecord]:
    """Return the jobs whose time is over."""

    def is_over(record: JobRecord) -> bool:
        by_deletion = record.deleted is not None and now - record.deleted > bounds.deleted_seconds
        return by_deletion or (record.finished is not None and now - record.finished > bounds.seconds)

    return [record for record in records if is_over(record)]


def surplus(sizes: dict[JobRecord, int], bounds: Bounds) -> list[JobRecord]:
    """Return the jobs that go to bring all within `total_bytes`: those that ended first; never one that runs."""
    over = sum(sizes.values()) - bounds.total_bytes
    gone = []
    for record in sorted((each for each in sizes if ended_at(each) is not None), key=lambda each: ended_at(each) or 0):
        if over <= 0:
            break
        gone.append(record)
        over -= sizes[record]
    return gone


def ended_at(record: JobRecord) -> float | None:
    """Return when a job finished or was deleted, whichever came first; None of one that runs."""
    return min((time for time in (record.finished, record.deleted) if time is not None), default=None)
