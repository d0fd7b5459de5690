"""How much is kept and for how long: what an admin decides, and what has to go by it. Pure.

Everything counts, in what it takes of a volume: bytes in whole blocks, and files, folders among them, of which a volume
has a number too. Each job has a bound, and all of them together.

**No namespace pushes out another's logs.** Where all together are over the bound, the namespace that has the most pays,
so one that has no more than its share (`Retention.share`: an equal part for each namespace of which something is kept)
never loses anything to another. What nobody uses is anybody's until it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from trainplane.hub.logarchive.records import JobRecord

    Namespace = TypeVar("Namespace")

BLOCK: Final = 4096
"""Bytes in which file systems give their room away."""
_SLACK: Final = 64
"""Where something has to go, so much goes that this part of the bound is free: one look for many writes."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What something takes of a volume."""

    bytes: int = 0
    files: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.bytes + other.bytes, self.files + other.files)

    def __sub__(self, other: Usage) -> Usage:
        return Usage(self.bytes - other.bytes, self.files - other.files)

    def within(self, limit: Usage) -> bool:
        """Return whether this is no more than a limit, in neither way."""
        return self.bytes <= limit.bytes and self.files <= limit.files


NOTHING: Final = Usage()
FOLDER: Final = Usage(BLOCK, 1)


def of_file(size: int) -> Usage:
    """Return what a file of so many bytes takes."""
    return Usage(-(-size // BLOCK) * BLOCK, 1)


@dataclass(frozen=True, slots=True)
class Retention:
    """Limits of what is kept."""

    job_bytes: int = 256 << 20
    """Bytes of one TrainJob, all pods together; past it runs that others took the place of go, then the oldest lines of
    its longest log. 256 MiB is some million lines."""
    total_bytes: int = 8 << 30
    """Bytes of all; past it, of the namespace that has the most, the jobs that ended first go. 8 GiB fits the volume of
    10 GiB that the manifests ask for."""
    seconds: float = 14 * 86400.0
    """Seconds after its finish that a job is kept: two weeks, a holiday and the time to look."""
    deleted_seconds: float = 3600.0
    """Seconds after its TrainJob was deleted that a job is kept: an hour, enough to regret it."""
    job_files: int = 1 << 16
    """Files and folders of one TrainJob: 8,000 pods with some runs each. Bounds pods and runs, in memory too."""
    total_files: int = 1 << 18
    """Files and folders of all: less than half of what a volume of 10 GiB has. Bounds jobs, pods and runs."""

    @property
    def job(self) -> Usage:
        """What one job may take."""
        return Usage(min(self.job_bytes, self.total_bytes), min(self.job_files, self.total_files))

    @property
    def set_aside(self) -> Usage:
        """What may be taken by what cannot be read: a sixteenth, out of the same bound."""
        return Usage(self.total_bytes // 16, self.total_files // 16)

    def total(self, set_aside: Usage = NOTHING) -> Usage:
        """What all jobs may take beside what is set aside."""
        return Usage(self.total_bytes, self.total_files) - set_aside

    def share(self, namespaces: int, set_aside: Usage = NOTHING) -> Usage:
        """Return what each of so many namespaces has for sure."""
        goal = lowered(self.total(set_aside))
        return Usage(goal.bytes // max(1, namespaces), goal.files // max(1, namespaces))

    def segment_bytes(self, logs: int) -> int:
        """Return how long a segment may get in a job with so many logs: an eighth of a fair share, within reason."""
        share = min(self.job_bytes // (8 * max(1, logs)), self.total_bytes // 64)
        return max(16 << 10, min(4 << 20, share))


def lowered(limit: Usage) -> Usage:
    """Return to what a usage is brought down that is over a limit."""
    return Usage(limit.bytes - limit.bytes // _SLACK, limit.files - limit.files // _SLACK)


def expired(records: Iterable[JobRecord], retention: Retention, now: float) -> list[JobRecord]:
    """Return the jobs whose time is over."""

    def is_over(record: JobRecord) -> bool:
        by_deletion = record.deleted is not None and now - record.deleted > retention.deleted_seconds
        return by_deletion or (record.finished is not None and now - record.finished > retention.seconds)

    return [record for record in records if is_over(record)]


def payer(usages: Mapping[Namespace, Usage], goal: Usage, exhausted: Container[Namespace] = ()) -> Namespace | None:
    """Return the namespace of which something goes next to bring all within a goal; None if they are, or none can pay.

    It has the most of what there is too much of. One that has no more than an equal part of the goal never pays:
    where all together are over it, another has more.
    """
    total = sum(usages.values(), NOTHING)
    for of in (attrgetter("bytes"), attrgetter("files")):
        paying = [name for name in usages if name not in exhausted and of(usages[name]) * len(usages) > of(goal)]
        if of(total) > of(goal) and paying:
            return max(paying, key=lambda name: int(of(usages[name])))
    return None


def excess(usages: Mapping[Namespace, Usage], name: Namespace, goal: Usage) -> Usage:
    """Return what a namespace that pays has too much: no more than all together, and than brings it to its share."""
    over = sum(usages.values(), NOTHING) - goal
    mine = usages[name] - Usage(goal.bytes // len(usages), goal.files // len(usages))
    return Usage(max(0, min(over.bytes, mine.bytes)), max(0, min(over.files, mine.files)))


def ended_at(record: JobRecord) -> float | None:
    """Return when a job finished or was deleted, whichever came first; None of one that runs."""
    return min((time for time in (record.finished, record.deleted) if time is not None), default=None)
