"""Room on the volume: what each namespace takes, and what goes before more is written than there may be.

Nothing is written before there is room for it, so bounds hold at any time. Who pays, `retention` says; what goes of a
job, `shrinking`. Where something has to go, more goes than must (`lowered`): one look serves many writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.hub.errors import FullError
from trainplane.hub.logarchive.retention import BLOCK, NOTHING, Usage, ended_at, excess, lowered, payer
from trainplane.hub.logarchive.shrinking import shrink

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainplane.hub.logarchive.keptjob import KeptJob
    from trainplane.hub.logarchive.retention import Retention
    from trainplane.hub.logarchive.volume import SetAside

    Namespace = tuple[str, str]


class Room:
    """What is taken. `jobs` are the archive's own, by uid; `remove` forgets one."""

    def __init__(
        self, retention: Retention, jobs: Mapping[str, KeptJob], set_aside: SetAside, remove: Callable[[str], None]
    ) -> None:
        self.usages: dict[Namespace, Usage] = {}
        """What each namespace takes, by name and uid."""
        self._total = NOTHING
        self._retention = retention
        self._jobs = jobs
        self._set_aside = set_aside
        self._remove = remove

    @property
    def usage(self) -> Usage:
        """What all takes, with what is set aside."""
        return self._total + self._set_aside.usage

    def charge(self, job: KeptJob, cost: Usage) -> None:
        """Note that a job takes more, or less."""
        job.usage += cost
        self._total += cost
        self.usages[job.namespace] = self.usages.get(job.namespace, NOTHING) + cost

    def release(self, job: KeptJob) -> None:
        """Note that a job takes nothing any more; neither does its namespace, if that was its last."""
        self.charge(job, NOTHING - job.usage)
        if self.usages[job.namespace] == NOTHING:
            del self.usages[job.namespace]

    def make(self, job: KeptJob, cost: Usage) -> bool:
        """See that there is room for more of a job; say whether there was, without anything going. Raises FullError."""
        limit, had_room = self._retention.job, True
        if not (job.usage + cost).within(limit):
            had_room = False
            self.shrink(job, lowered(limit) - cost)
            if not (job.usage + cost).within(limit):
                raise FullError(
                    f"TrainJob {job.record.namespace}/{job.record.name} has {job.usage.files} files on the hub's volume"
                    f" that may not go, and no room for more (--keep-job-bytes, --keep-job-files)"
                )
        return self.evict(job.namespace, cost, job) and had_room

    def shrink(self, job: KeptJob, goal: Usage) -> bool:
        """Bring a job down to a goal, as far as that goes; say whether anything went."""
        freed = shrink(job, goal)
        self.charge(job, NOTHING - freed)
        if freed != NOTHING:
            job.news.notify()
        return freed != NOTHING

    def evict(self, namespace: Namespace | None, cost: Usage, writer: KeptJob | None) -> bool:
        """See that all together have room for what a namespace is about to write; say whether they had it before.

        The job that writes is not removed for it. Raises FullError.
        """
        total = self._retention.total(self._set_aside.usage)
        if (self._total + cost).within(total):
            return True
        self._bring_down(lowered(total), namespace, cost, writer)
        if not (self._total + cost).within(total):
            raise FullError(
                f"the hub's volume has room for {self._retention.total_bytes} bytes and {self._retention.total_files} "
                "files of logs, all taken by jobs that run (--keep-total-bytes, --keep-total-files)"
            )
        return False

    def squeeze(self, writer: KeptJob | None) -> bool:
        """Let something go for a volume that is full before our own bound is reached; say whether anything went."""
        before = self._total
        part = Usage(max(BLOCK, before.bytes // 16), max(1, before.files // 16))
        self._bring_down(before - part, None, NOTHING, writer)
        return self._total != before

    def _bring_down(self, goal: Usage, namespace: Namespace | None, cost: Usage, writer: KeptJob | None) -> None:
        """Let the namespaces pay that have the most, until all are within a goal or have nothing left that may go."""
        exhausted: set[Namespace] = set()
        while True:
            usages = dict(self.usages)
            if namespace is not None:
                usages[namespace] = usages.get(namespace, NOTHING) + cost
            paying = payer(usages, goal, exhausted)
            if paying is None:
                return
            too_much = excess(usages, paying, goal)
            if not self._pay(paying, too_much, writer):
                exhausted.add(paying)

    def _pay(self, namespace: Namespace, too_much: Usage, writer: KeptJob | None) -> bool:
        """Let something of a namespace go: of the jobs that ended first, else of the largest; say whether any did.

        A job that has more than is too much keeps the rest: a namespace is not brought below its share.
        """
        jobs = [job for job in self._jobs.values() if job.namespace == namespace]
        ended = [job for job in jobs if job is not writer and ended_at(job.record) is not None]
        if ended:
            first = min(ended, key=lambda job: ended_at(job.record) or 0)
            if first.usage.within(too_much) or not self.shrink(first, first.usage - too_much):
                self._remove(first.record.uid)
            return True
        largest_first = sorted(jobs, key=lambda job: job.usage.bytes, reverse=True)
        return any(self.shrink(job, job.usage - too_much) for job in largest_first)
