"""Reading logs: from journals alone, whether the pods are still there or long gone.

Whoever follows reads the journal as it grows, so any number of readers costs a worker one stream, and a worker that is
cut off and comes back shows as a pause and not as an error. Lines of several ranks are merged by their times as far as
they are there, and then come as they are printed.
"""

from __future__ import annotations

import asyncio
import heapq
from typing import TYPE_CHECKING, Final

from trainplane.hub.errors import NoLogError
from trainplane.hub.kept.lines import NOTE, note, text_of
from trainplane.hub.served.logquery import choose
from trainplane.kube.containerlogs import nanoseconds

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

    from trainplane.hub.kept.journal import Journal
    from trainplane.hub.kept.keptjob import KeptJob
    from trainplane.hub.served.logquery import LogQuery, Rank, Run

_CHUNK: Final = 1 << 16
_WAITING: Final = 256
"""Chunks of a follower's ranks that wait for a slow reader, after which the ranks wait too."""


class Form:
    """How lines are shown."""

    def __init__(self, query: LogQuery) -> None:
        self._timestamps = query.timestamps
        self._marks = query.rank is None

    def show(self, rank: Rank, lines: list[bytes]) -> bytes:
        """Return lines of a rank as text."""
        mark = f"[{rank}] ".encode() if self._marks else b""
        if self._timestamps:
            return b"".join(mark + line.removeprefix(NOTE) + b"\n" for line in lines)
        return b"".join(mark + text_of(line) + b"\n" for line in lines)


def beginning(journal: Journal, query: LogQuery, now: int) -> int:
    """Return the offset from which a journal is shown; `now` in nanoseconds."""
    if query.tail_lines is None and query.since_seconds is None:
        return journal.begin
    oldest = None if query.since_seconds is None else now - query.since_seconds * 1_000_000_000
    offset, count = journal.end, 0
    for place, line in journal.backward():
        moment = nanoseconds(line.removeprefix(NOTE))
        if query.tail_lines is not None and count >= query.tail_lines:
            break
        if oldest is not None and moment is not None and moment < oldest:
            break
        offset = place
        count += not line.startswith(NOTE)
    return offset


def read(job: KeptJob, query: LogQuery, now: int) -> Iterator[bytes]:
    """Iterate over the text of what is there now; raises NoLogError at once if there is nothing of the kind."""
    chosen = {rank: runs[-2 if query.previous else -1] for rank, runs in choose(job, query).items()}
    return _merged({rank: (run, beginning(run.journal, query, now)) for rank, run in chosen.items()}, Form(query))


def _merged(sources: dict[Rank, tuple[Run, int]], form: Form) -> Iterator[bytes]:
    if len(sources) == 1:
        ((rank, (run, offset)),) = sources.items()
        yield from (form.show(rank, [_dropped(run.journal)]) for _ in range(_lacks(run.journal, offset)))
        for lines in _blocks(run.journal, offset, run.journal.end):
            yield form.show(rank, lines)
        return
    streams = [_timed(rank, run.journal, offset) for rank, (run, offset) in sources.items()]
    chunk = bytearray()
    for _, rank, line in heapq.merge(*streams, key=lambda entry: entry[0]):
        chunk += form.show(rank, [line])
        if len(chunk) >= _CHUNK:
            yield bytes(chunk)
            chunk.clear()
    yield bytes(chunk)


def _lacks(journal: Journal, offset: int) -> bool:
    return offset == journal.begin > 0


def _dropped(journal: Journal) -> bytes:
    first = journal.read(journal.begin, 1)[0]
    return note(first.removeprefix(NOTE), f"{journal.begin} bytes of older lines are no longer kept")


def _blocks(journal: Journal, offset: int, stop: int) -> Iterator[list[bytes]]:
    while offset < stop:
        data, offset = journal.read(offset, _CHUNK)
        if not data:
            return
        yield data[:-1].split(b"\n")


def _timed(rank: Rank, journal: Journal, offset: int) -> Iterator[tuple[int, Rank, bytes]]:
    """Yield lines with a time to merge by: their own, or that of a line before them if that is later."""
    time = 0
    if _lacks(journal, offset):
        yield time, rank, _dropped(journal)
    for lines in _blocks(journal, offset, journal.end):
        for line in lines:
            time = max(time, nanoseconds(line.removeprefix(NOTE)) or 0)
            yield time, rank, line


class Follow:
    """Follows the ranks of a job until it is over.

    Args:
        job: the job.
        query: what is asked for.
        is_followed: says of a run whether more lines may still come.
        now: nanoseconds since 1970, for `sinceSeconds`.
    """

    def __init__(self, job: KeptJob, query: LogQuery, is_followed: Callable[[Run], bool], now: int) -> None:
        self._job = job
        self._query = query
        self._is_followed = is_followed
        self._now = now
        self._form = Form(query)
        self._queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue(_WAITING)
        self._tasks: dict[Rank, asyncio.Task[None]] = {}

    async def text(self) -> AsyncGenerator[bytes, None]:
        """Iterate over the text, to the end of the job."""
        filling = asyncio.create_task(self._fill())
        try:
            while (chunk := await self._queue.get()) is not None:
                if isinstance(chunk, Exception):
                    raise chunk
                yield chunk
        finally:
            filling.cancel()
            await asyncio.gather(filling, return_exceptions=True)

    async def _fill(self) -> None:
        """Fill the queue; the last entry is None, or what went wrong."""
        error = None
        try:
            await self._watch()
        except Exception as caught:  # noqa: BLE001 raised where the text is read
            error = caught
        await self._queue.put(error)

    async def _watch(self) -> None:
        """Show what is there, follow each rank, and end when the job is over and all are at their end."""
        starts = self._starts()
        stops = {rank: (run, run.journal.end) for rank, (run, _) in starts.items()}
        for text in _merged(starts, self._form):
            await self._queue.put(text)
        async with asyncio.TaskGroup() as group:
            for rank, (run, offset) in stops.items():
                self._tasks[rank] = group.create_task(self._rank(rank, run, offset))
            while True:
                news = self._job.news
                for rank, (run, offset) in self._starts().items():
                    if rank not in self._tasks:
                        self._tasks[rank] = group.create_task(self._rank(rank, run, offset))
                if is_over(self._job) and all(task.done() for task in self._tasks.values()):
                    return
                await _first(news, *(task for task in self._tasks.values() if not task.done()))

    def _starts(self) -> dict[Rank, tuple[Run, int]]:
        return {
            rank: (runs[-1], beginning(runs[-1].journal, self._query, self._now))
            for rank, runs in _chosen(self._job, self._query).items()
        }

    async def _rank(self, rank: Rank, run: Run, offset: int) -> None:
        while True:
            news, journal_news = self._job.news, run.journal.news
            data, offset = run.journal.read(offset, _CHUNK)
            if data:
                await self._queue.put(self._form.show(rank, data[:-1].split(b"\n")))
                continue
            following = self._after(rank, run)
            if following is not None:
                run, offset = following, 0
                continue
            if is_over(self._job) and (run.journal.ended is not None or not self._is_followed(run)):
                return
            await _first(news, journal_news)

    def _after(self, rank: Rank, run: Run) -> Run | None:
        """Return the run that came after one that is at its end."""
        if run.journal.ended is None and self._is_followed(run):
            return None
        runs = _chosen(self._job, self._query).get(rank, [])
        places = [place for place, known in enumerate(runs) if known.journal is run.journal]
        return runs[places[0] + 1] if places and places[0] + 1 < len(runs) else None


async def _first(event: asyncio.Event, *others: asyncio.Event | asyncio.Task[None]) -> None:
    """Wait for the first of some events and tasks; tasks that are not done go on."""
    events = [each for each in (event, *others) if isinstance(each, asyncio.Event)]
    waits = [asyncio.create_task(each.wait()) for each in events]
    try:
        tasks = [each for each in others if isinstance(each, asyncio.Task)]
        await asyncio.wait([*waits, *tasks], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def _chosen(job: KeptJob, query: LogQuery) -> dict[Rank, list[Run]]:
    try:
        return choose(job, query)
    except NoLogError:
        return {}


def is_over(job: KeptJob) -> bool:
    """Say whether a TrainJob has finished or is deleted, so that no pod of it will start any more."""
    return job.record.finished is not None or job.record.deleted is not None
