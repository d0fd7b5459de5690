"""The text of logs: from journals alone, whether the pods are still there or long gone.

It is made in threads (`readers`), so it comes in steps, an empty chunk where there is nothing to show yet, and little
is held: of one rank a block of lines, of many a few lines each. Lines of several ranks are merged by their times.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

from trainplane.hub.apiserver.cursor import CHUNK, Beginning, Cursor
from trainplane.hub.apiserver.logform import Form
from trainplane.hub.apiserver.logquery import choose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.hub.apiserver.logquery import LogQuery, Rank, Run
    from trainplane.hub.logarchive.keptjob import KeptJob

_SHARED: Final = 1 << 18
"""Bytes that all ranks of one reader hold together, as far as there can be a line of each."""
_LEAST: Final = 1 << 11
"""Bytes of one of very many ranks."""


def read(job: KeptJob, query: LogQuery, now: int) -> Iterator[bytes]:
    """Iterate over the text of what is there now; `now` in nanoseconds since 1970, for `sinceSeconds`.

    Raises NoLogError at once if there is nothing of the kind.
    """
    chosen = {rank: runs[-2 if query.previous else -1] for rank, runs in choose(job, query).items()}
    return show({rank: (run, run.journal.end) for rank, run in chosen.items()}, query, now)


def show(runs: dict[Rank, tuple[Run, int]], query: LogQuery, now: int) -> Iterator[bytes]:
    """Iterate over the text of runs, each up to an offset."""
    form = Form(query)
    limit = min(CHUNK, max(_LEAST, _SHARED // max(1, len(runs))))
    cursors = []
    for rank, (run, stop) in runs.items():
        beginning = Beginning(run.journal, query, now, stop)
        for _ in beginning.search():
            yield b""
        cursors.append(Cursor(rank, run.journal, beginning.found, stop, limit))
    if len(cursors) == 1:
        (cursor,) = cursors
        while block := cursor.block():
            yield form.show(cursor.rank, block)
    else:
        yield from _merged(cursors, form)


def _merged(cursors: list[Cursor], form: Form) -> Iterator[bytes]:
    heap = []
    for number, cursor in enumerate(cursors):
        if cursor.look():
            heap.append((cursor.time, number))
        if number % 50 == 0:
            yield b""
    heapq.heapify(heap)
    chunk = bytearray()
    while heap:
        _, number = heap[0]
        cursor = cursors[number]
        chunk += form.show(cursor.rank, cursor.line())
        if cursor.look():
            heapq.heapreplace(heap, (cursor.time, number))
        else:
            heapq.heappop(heap)
        if len(chunk) >= CHUNK:
            yield bytes(chunk)
            chunk.clear()
    yield bytes(chunk)
