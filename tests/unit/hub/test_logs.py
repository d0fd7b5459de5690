from __future__ import annotations

import asyncio
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from tests.unit.hub.kept import NAMESPACE_UID, keep, numbered, pod
from tests.unit.hub.kubelet import SECOND, START, line
from trainplane.hub.apiserver.following import Follow
from trainplane.hub.apiserver.logquery import LogQuery
from trainplane.hub.apiserver.logs import read
from trainplane.hub.apiserver.readers import Readers
from trainplane.hub.errors import NoLogError
from trainplane.hub.logarchive.archive import Archive
from trainplane.hub.logarchive.lines import note
from trainplane.hub.logarchive.retention import Retention
from trainplane.kube.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trainplane.hub.logarchive.keptjob import KeptJob

READERS = Readers()
PATIENCE = 60
"""Seconds for what must happen: for a bug, not for pacing."""


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    opened = Archive(tmp_path, Retention(), FakeClock())
    yield opened
    opened.close()


def text(job: KeptJob, now: int = START, **query: object) -> list[str]:
    return b"".join(read(job, LogQuery(**query), now)).decode().splitlines()  # type: ignore[arg-type]


def test_one_rank_is_shown_as_it_printed(archive: Archive) -> None:
    job, _ = keep(archive, pod(), numbered(5))
    assert text(job) == [f"line {number}" for number in range(5)]
    assert text(job, timestamps=True) == [one.decode() for one in numbered(5)]


def test_the_last_lines_are_shown(archive: Archive) -> None:
    lines = numbered(5000)
    lines[4990:4990] = [note(lines[4990], "remark")]
    job, _ = keep(archive, pod(), lines)
    assert text(job, tail_lines=3) == [f"line {number}" for number in range(4997, 5000)]
    assert text(job, tail_lines=0) == []
    assert len(text(job, tail_lines=9999)) == 5001
    assert text(job, tail_lines=11) == ["line 4989", "[trainplane] remark", *(f"line {n}" for n in range(4990, 5000))]


def test_only_recent_lines_are_shown(archive: Archive) -> None:
    job, _ = keep(archive, pod(), numbered(100, every=SECOND))
    now = START + 99 * SECOND
    assert text(job, now, since_seconds=3) == [f"line {number}" for number in range(96, 100)]
    assert text(job, now, since_seconds=3, tail_lines=1) == ["line 99"]
    assert text(job, now + 60 * SECOND, since_seconds=3) == []


def test_previous_is_the_run_before_the_last_whichever_pod_it_was_in(archive: Archive) -> None:
    first, second = pod("a", created="2026-11-15T05:00:00Z"), pod("b", created="2026-11-15T06:00:00Z")
    keep(archive, first, numbered(1, text="a0"))
    job, _ = keep(archive, first, numbered(1, text="a1"), run=1)
    assert (text(job), text(job, previous=True)) == (["a1 0"], ["a0 0"])
    keep(archive, second, numbered(1, text="b0"))
    assert (text(job), text(job, previous=True)) == (["b0 0"], ["a1 0"])


def test_all_ranks_are_merged_by_time_and_marked(archive: Archive) -> None:
    job = archive.admit("job-1", "team", "x", NAMESPACE_UID)
    for rank in range(3):
        lines = [line(START + number * SECOND + rank, f"epoch {number}") for number in range(100)]
        keep(archive, pod(f"n-{rank}", index=rank), lines)
    shown = text(job, rank=None)
    assert shown == [f"[node-{rank}] epoch {number}" for number in range(100) for rank in range(3)]
    assert text(job, rank=None, tail_lines=1) == [f"[node-{rank}] epoch 99" for rank in range(3)]
    assert text(job, rank=None, timestamps=True)[0] == f"[node-0] {line(START, 'epoch 0').decode()}"


def test_lines_out_of_order_keep_their_order(archive: Archive) -> None:
    mixed = [line(START + 9, "first"), line(START + 3, "second"), line(START + 11, "third")]
    keep(archive, pod("n-0"), mixed)
    job, _ = keep(archive, pod("n-1", index=1), [line(START + 10, "other")])
    assert [each for each in text(job, rank=None) if "node-0" in each] == [
        "[node-0] first",
        "[node-0] second",
        "[node-0] third",
    ]


def test_what_is_no_longer_kept_is_told(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "small", Retention(job_bytes=50_000), FakeClock())
    job, kept = keep(archive, pod(), [])
    for start in range(0, 5000, 50):
        keep(archive, pod(), numbered(50, start))
    (journal,) = kept.runs.values()
    shown = text(job)
    assert shown[0] == f"[trainplane] {journal.begin} bytes of older lines are no longer kept"
    assert shown[-1] == "line 4999"
    assert not any("trainplane" in one for one in text(job, tail_lines=5))
    keep(archive, pod("n-1", index=1), numbered(1))
    assert sum("no longer kept" in one for one in text(job, rank=None)) == 1
    archive.close()


def test_nothing_of_the_kind_is_an_error_at_once(archive: Archive) -> None:
    job, _ = keep(archive, pod(), numbered(1))
    with pytest.raises(NoLogError):
        read(job, LogQuery(rank=3), START)


class Reader:
    """Reads a followed log in the background."""

    def __init__(self, job: KeptJob, *, followed: bool = True, **query: object) -> None:
        self.lines: list[str] = []
        self.followed = followed
        follow = Follow(job, LogQuery(follow=True, **query), lambda _: self.followed, START, READERS)  # type: ignore[arg-type]
        self.task = asyncio.create_task(self._read(follow))

    async def _read(self, follow: Follow) -> None:
        async for chunk in follow.text():
            self.lines += chunk.decode().splitlines()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while len(self.lines) < count:  # noqa: ASYNC110 what is printed has no event of its own
                await asyncio.sleep(0)
        assert len(self.lines) == count


async def test_a_followed_log_goes_on_until_the_job_is_over(archive: Archive) -> None:
    job, kept = keep(archive, pod(), numbered(3))
    reader = Reader(job)
    await reader.until(3)
    keep(archive, pod(), numbered(3, 3))
    await reader.until(6)
    archive.mark(job, finished=True)
    keep(archive, pod(), numbered(2, 6))
    await reader.until(8)
    assert not reader.task.done(), "the last lines may still be on their way"
    kept.journal("node", 0).finish("ended")
    await asyncio.wait_for(reader.task, PATIENCE)
    assert reader.lines == [f"line {number}" for number in range(8)]


async def test_a_followed_log_goes_on_through_restarts_and_new_pods(archive: Archive) -> None:
    job, kept = keep(archive, pod("a", created="2026-11-15T05:00:00Z"), numbered(2, text="a0"))
    reader = Reader(job)
    await reader.until(2)
    kept.journal("node", 0).finish("ended")
    keep(archive, pod("a", created="2026-11-15T05:00:00Z"), numbered(2, text="a1"), run=1)
    await reader.until(4)
    kept.journal("node", 1).finish("gone")
    _, later = keep(archive, pod("b", created="2026-11-15T06:00:00Z"), numbered(2, text="b0"))
    await reader.until(6)
    later.journal("node", 0).finish("ended")
    archive.mark(job, finished=True)
    await asyncio.wait_for(reader.task, PATIENCE)
    assert reader.lines == ["a0 0", "a0 1", "a1 0", "a1 1", "b0 0", "b0 1"]


async def test_a_followed_log_of_a_finished_job_ends_where_it_does(archive: Archive) -> None:
    job, kept = keep(archive, pod(), numbered(3))
    kept.journal("node", 0).finish("ended")
    archive.mark(job, finished=True)
    reader = Reader(job)
    await asyncio.wait_for(reader.task, PATIENCE)
    assert len(reader.lines) == 3


async def test_a_log_that_nobody_follows_any_more_does_not_hold_its_reader(archive: Archive) -> None:
    job, _ = keep(archive, pod(), numbered(3))
    archive.mark(job, deleted=True)
    reader = Reader(job, followed=False)
    await asyncio.wait_for(reader.task, PATIENCE)
    assert len(reader.lines) == 3


async def test_ranks_that_start_late_are_followed_too(archive: Archive) -> None:
    job = archive.admit("job-1", "team", "x", NAMESPACE_UID)
    reader = Reader(job, rank=None)
    _, first = keep(archive, pod("n-0"), numbered(1))
    await reader.until(1)
    _, second = keep(archive, pod("n-1", index=1), numbered(1))
    await reader.until(2)
    for each in (first, second):
        each.journal("node", 0).finish("ended")
    archive.mark(job, finished=True)
    await asyncio.wait_for(reader.task, PATIENCE)
    assert sorted(reader.lines) == ["[node-0] line 0", "[node-1] line 0"]


async def test_following_begins_with_the_last_lines(archive: Archive) -> None:
    job, kept = keep(archive, pod(), numbered(100))
    reader = Reader(job, tail_lines=2)
    await reader.until(2)
    keep(archive, pod(), numbered(1, 100))
    await reader.until(3)
    kept.journal("node", 0).finish("ended")
    archive.mark(job, finished=True)
    await asyncio.wait_for(reader.task, PATIENCE)
    assert reader.lines == ["line 98", "line 99", "line 100"]


async def test_a_reader_that_stands_still_holds_one_chunk(archive: Archive) -> None:
    job, kept = keep(archive, pod(), numbered(60_000))
    kept.journal("node", 0).finish("ended")
    archive.mark(job, finished=True)
    text = Follow(job, LogQuery(follow=True), lambda _: True, START, READERS).text()
    read = len(await anext(text))
    tracemalloc.start()
    try:
        for _ in range(20):
            read += len(await anext(text))
            await asyncio.sleep(0)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 300_000, "a chunk of 64 KiB, as it is kept and as it is shown"
    assert read + sum([len(chunk) async for chunk in text]) == sum(len(f"line {number}\n") for number in range(60_000))


async def test_a_reader_that_is_overtaken_is_told_what_it_missed(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "small", Retention(job_bytes=300_000), FakeClock())
    job, kept = keep(archive, pod(), numbered(3000))
    text = Follow(job, LogQuery(follow=True), lambda _: True, START, READERS).text()
    first = (await anext(text)).decode().splitlines()
    for start in range(3000, 30_000, 100):
        keep(archive, pod(), numbered(100, start))
    kept.journal("node", 0).finish("ended")
    archive.mark(job, finished=True)
    rest = b"".join([chunk async for chunk in text]).decode().splitlines()
    remarks = [line for line in rest if "bytes of older lines are no longer kept" in line]
    shown = [*first, *(line for line in rest if line not in remarks)]
    missed = sum(int(line.split()[1]) for line in remarks)
    assert (shown[0], shown[-1]) == ("line 0", "line 29999")
    assert sum(len(line) for line in numbered(30_000)) + 30_000 == missed + sum(
        len(numbered(1, int(line.split()[1]))[0]) + 1 for line in shown
    )
    numbers = [int(line.split()[1]) for line in shown]
    assert numbers == sorted(numbers)
    archive.close()


async def test_a_rank_that_prints_all_the_time_does_not_silence_others(archive: Archive) -> None:
    job = archive.admit("job-1", "team", "x", NAMESPACE_UID)
    keep(archive, pod("n-0"), numbered(1))
    keep(archive, pod("n-1", index=1), numbered(1))
    text = Follow(job, LogQuery(follow=True, rank=None), lambda _: True, START, READERS).text()
    assert (await anext(text)).count(b"\n") == 2
    keep(archive, pod("n-0"), numbered(50_000, 1))
    keep(archive, pod("n-1", index=1), numbered(1, 1))
    assert {(await anext(text))[:8] for _ in range(2)} == {b"[node-0]", b"[node-1]"}
    await text.aclose()


async def test_a_reader_that_leaves_takes_its_tasks_along(archive: Archive) -> None:
    job, _ = keep(archive, pod(), numbered(3))
    before = len(asyncio.all_tasks())
    text = Follow(job, LogQuery(follow=True), lambda _: True, START, READERS).text()
    await anext(text)
    await text.aclose()
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == before
    assert [journal.readers for journal in job.journals] == [set()]
