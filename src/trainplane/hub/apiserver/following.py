"""Following a log: what is there, and then lines as they are printed, until the job is over.

Whoever follows reads the journal as it grows, so any number of readers costs a worker one stream, and a worker that is
cut off and comes back shows as a pause and not as an error. Nothing is read before it is wanted: a reader that stands
still holds one chunk, and what was dropped from the volume meanwhile it is told of.

A rank goes on with its next run when the last is over. A worker that is lost never says so; but a job is on one
cluster at a time, so when newer pods of it are on another, the runs before are left: what they may still bring is
shown when it comes, and nobody waits for it.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

from trainplane.hub.apiserver.cursor import Beginning, Cursor
from trainplane.hub.apiserver.logform import Form
from trainplane.hub.apiserver.logquery import choose
from trainplane.hub.apiserver.logs import show
from trainplane.hub.errors import NoLogError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from trainplane.hub.apiserver.logquery import LogQuery, Rank, Run
    from trainplane.hub.apiserver.readers import Readers
    from trainplane.hub.logarchive.keptjob import KeptJob


class _Place(NamedTuple):
    """How far a run is read."""

    run: Run
    cursor: Cursor


class Follow:
    """Follows the ranks of a job until it is over.

    Args:
        job: the job.
        query: what is asked for.
        is_followed: says of a run whether more lines may still come.
        now: nanoseconds since 1970, for `sinceSeconds`.
        readers: reads files.
    """

    def __init__(
        self, job: KeptJob, query: LogQuery, is_followed: Callable[[Run], bool], now: int, readers: Readers
    ) -> None:
        self._job = job
        self._query = query
        self._is_followed = is_followed
        self._now = now
        self._readers = readers
        self._form = Form(query)
        self._places: dict[Rank, list[_Place]] = {}
        """By rank: where its last run is read, and before it runs that were left and may still bring lines."""
        self._runs: dict[Rank, list[Run]] = {}
        self._cluster = ""
        """As of the beginning of a round: what changes meanwhile begins another."""
        self._woken = asyncio.Event()

    async def text(self) -> AsyncGenerator[bytes, None]:
        """Iterate over the text, to the end of the job."""
        try:
            runs = {rank: (runs[-1], runs[-1].journal.end) for rank, runs in self._chosen().items()}
            async with aclosing(self._readers.each(show(runs, self._query, self._now))) as chunks:
                async for chunk in chunks:
                    yield chunk
            for rank, (run, stop) in runs.items():
                self._take(rank, run, stop)
            while True:
                news = self._job.news.next
                self._woken.clear()
                self._runs, self._cluster = self._chosen(), _cluster(self._job)
                await self._join()
                stands = True
                for rank in list(self._places):
                    if text := await self._next(rank):
                        stands = False
                        yield text
                if not stands:
                    continue
                if self._is_over() and not (news.is_set() or self._woken.is_set()):
                    return
                await _first(news, self._woken)
        finally:
            for places in self._places.values():
                for place in places:
                    place.run.journal.readers.discard(self._woken)

    async def _next(self, rank: Rank) -> bytes:
        """Return what a rank printed next; empty where it stands now."""
        places = self._places[rank]
        while True:
            for place in list(places):
                place.cursor.stop = place.run.journal.end
                if place.cursor.is_behind and (block := await self._readers.step(place.cursor.block)):
                    return self._form.show(rank, block)
                if place is not places[-1] and place.run.journal.ended is not None:
                    self._leave(places, place)
            following = self._after(rank, places[-1].run)
            if following is None:
                return b""
            self._take(rank, following, 0)

    def _take(self, rank: Rank, run: Run, offset: int) -> None:
        """Go on with a run."""
        run.journal.readers.add(self._woken)
        cursor = Cursor(rank, run.journal, offset, run.journal.end)
        self._places.setdefault(rank, []).append(_Place(run, cursor))

    def _leave(self, places: list[_Place], place: _Place) -> None:
        place.run.journal.readers.discard(self._woken)
        places.remove(place)

    async def _join(self) -> None:
        """Take up ranks that have begun meanwhile."""
        for rank, runs in self._runs.items():
            if rank not in self._places:
                run = runs[-1]
                beginning = Beginning(run.journal, self._query, self._now, run.journal.end)
                steps = beginning.search()
                while await self._readers.step(lambda steps=steps: next(steps, steps)) is None:  # type: ignore[misc] # bound now
                    pass
                self._take(rank, run, beginning.found)

    def _is_over(self) -> bool:
        """Return whether nothing more will come, now that all ranks stand."""
        return is_over(self._job) and all(self._is_done(places[-1].run) for places in self._places.values())

    def _is_done(self, run: Run) -> bool:
        """Return whether nobody need wait for more lines of a run."""
        return run.journal.ended is not None or run.pod.cluster != self._cluster or not self._is_followed(run)

    def _after(self, rank: Rank, run: Run) -> Run | None:
        """Return the run that came after one that is at its end, or was left."""
        if not self._is_done(run):
            return None
        runs = self._runs.get(rank, [])
        places = [place for place, known in enumerate(runs) if known.journal is run.journal]
        return runs[places[0] + 1] if places and places[0] + 1 < len(runs) else None

    def _chosen(self) -> dict[Rank, list[Run]]:
        try:
            return choose(self._job, self._query)
        except NoLogError:
            return {}


def _cluster(job: KeptJob) -> str:
    """Return where a job's newest pod is, and so the job."""
    newest = max(job.pods.values(), key=lambda pod: (pod.seen, pod.created), default=None)
    return "" if newest is None else newest.cluster


async def _first(*events: asyncio.Event) -> None:
    """Wait for the first of some events."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def is_over(job: KeptJob) -> bool:
    """Return whether a job has finished or is deleted, so that no pod of it will start any more."""
    return job.record.finished is not None or job.record.deleted is not None
