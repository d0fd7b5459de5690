from __future__ import annotations

import asyncio
import errno
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.hub.kubelet import SECOND, START, LogFile, line
from trainplane.hub.logarchive.journal import Journal
from trainplane.hub.logarchive.lines import NOTE, note
from trainplane.hub.logarchive.retention import BLOCK, NOTHING, Usage
from trainplane.kube.containerlogs import Resumption, resumed_from, since_time

if TYPE_CHECKING:
    from pathlib import Path

LARGE = 1 << 20


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [line(START + number * SECOND // 10, f"line {number}") for number in range(first, first + count)]


def whole(journal: Journal) -> list[bytes]:
    data, offset = b"", journal.begin
    while True:
        block, offset = journal.read(offset, 100)
        if not block:
            return data.split(b"\n")[:-1]
        data += block


def test_lines_come_back_as_they_were(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "node.0")
    lines = numbered(50)
    journal.append(lines[:20], segment_bytes=LARGE)
    journal.append(lines[20:], segment_bytes=LARGE)
    assert whole(journal) == lines
    assert whole(Journal(tmp_path, "node.0")) == lines
    assert [text for _, text in journal.backward()] == lines[::-1]
    assert (journal.begin, journal.end, journal.size) == (0, sum(len(one) + 1 for one in lines), journal.end)


def test_an_empty_journal_has_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "node.0")
    assert (journal.read(0), journal.newest(), journal.since(0), journal.size) == ((b"", 0), None, [], 0)
    assert journal.append([], segment_bytes=LARGE) is False
    assert list(tmp_path.iterdir()) == []


def test_offsets_lead_to_lines(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "node.0")
    journal.append(numbered(100), segment_bytes=LARGE)
    for offset, text in journal.backward():
        assert journal.read(offset, 1)[0] == text + b"\n"


def test_long_lines_are_read_whole(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "node.0")
    lines = [line(START, "x" * 200_000), line(START + 1, "y"), line(START + 2, "z" * 70_000)]
    journal.append(lines, segment_bytes=LARGE)
    assert whole(journal) == lines
    assert [text for _, text in journal.backward()] == lines[::-1]


def test_segments_are_dropped_from_the_front_and_offsets_stay(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "node.0")
    lines = numbered(30)
    for one in lines:
        journal.append([one], segment_bytes=200)
    assert journal.segments > 3
    end, size = journal.end, journal.size
    usage = journal.usage
    freed = journal.drop_oldest() + journal.drop_oldest()
    assert (journal.usage, freed.files) == (usage - freed, 4)
    dropped = journal.begin
    assert dropped > 0
    assert (journal.end, journal.size) == (end, size - dropped)
    left = whole(journal)
    assert left == lines[-len(left) :]
    assert journal.read(0, 100) == journal.read(dropped, 100)
    again = Journal(tmp_path, "node.0")
    assert (again.begin, again.end, whole(again)) == (journal.begin, journal.end, left)


def test_the_only_segment_may_go_too_and_lines_go_on_after_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "node.0")
    assert journal.drop_oldest() == NOTHING
    journal.append(numbered(3), segment_bytes=LARGE)
    end = journal.end
    assert journal.drop_oldest() == Usage(2 * BLOCK, 2)
    assert (whole(journal), journal.begin, journal.end, journal.usage) == ([], end, end, NOTHING)
    journal.append(numbered(2, 3), segment_bytes=LARGE)
    assert (whole(journal), journal.begin) == (numbered(2, 3), end)
    journal.finish("ended")
    journal.drop(mark=True)
    again = Journal(tmp_path, "node.0")
    assert (again.ended, whole(again), again.begin, again.end) == ("ended", [], journal.end, journal.end)


def test_journals_of_other_names_are_not_mixed_up(tmp_path: Path) -> None:
    Journal(tmp_path, "node.1").append(numbered(1, 1), segment_bytes=LARGE)
    Journal(tmp_path, "node.10").append(numbered(1, 10), segment_bytes=LARGE)
    Journal(tmp_path, "node.10").finish("ended")
    assert whole(Journal(tmp_path, "node.1")) == numbered(1, 1)
    assert Journal(tmp_path, "node.1").ended is None


def test_an_end_is_remembered(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "node.0")
    journal.append(numbered(2), segment_bytes=LARGE)
    journal.finish("gone")
    again = Journal(tmp_path, "node.0")
    assert (again.ended, again.end, whole(again)) == ("gone", journal.end, numbered(2))


async def test_readers_are_woken_by_lines_and_by_the_end(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "node.0")
    news = asyncio.Event()
    journal.readers.add(news)
    journal.append(numbered(1), segment_bytes=LARGE)
    assert news.is_set()
    news.clear()
    journal.finish("ended")
    assert news.is_set()


def test_what_comes_again_with_a_resumed_stream(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "node.0")
    lines = numbered(40)
    early = line(START + 39 * SECOND // 10 - SECOND // 2, "another stream's, stamped before")
    journal.append([*lines[:39], note(lines[39], "a remark"), lines[39], early], segment_bytes=300)
    newest = journal.newest()
    assert newest == START + 39 * SECOND // 10 - SECOND // 2
    since = resumed_from(newest)
    assert journal.since(since) == [*(one for n, one in enumerate(lines) if START + n * SECOND // 10 >= since), early]
    assert not any(one.startswith(NOTE) for one in journal.since(0))


@pytest.mark.parametrize("left", [b"2026-11", b"2026-11-15T05:11:08.1Z half", b"\0\0\0\0", b"\0\0\n\0\0", b"garbage\n"])
def test_what_a_killed_write_left_is_cut_off(tmp_path: Path, left: bytes) -> None:
    journal = Journal(tmp_path, "node.0")
    journal.append(numbered(3), segment_bytes=LARGE)
    (path,) = tmp_path.glob("*.lines")
    with path.open("ab") as file:
        file.write(left)
    again = Journal(tmp_path, "node.0")
    assert whole(again) == numbered(3)
    again.append(numbered(2, 3), segment_bytes=LARGE)
    assert whole(Journal(tmp_path, "node.0")) == numbered(5)


def test_a_segment_that_holds_no_whole_line_goes(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "node.0")
    journal.append(numbered(3), segment_bytes=LARGE)
    (tmp_path / f"node.0.{journal.end:012d}.log").write_bytes(b"2026-11-15T05:11:08Z ha")
    again = Journal(tmp_path, "node.0")
    assert [path.name for path in (tmp_path / "set-aside").iterdir()] != []
    assert (again.segments, whole(again)) == (1, numbered(3))


def test_a_segment_that_a_crash_left_short_does_not_stop_readers(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "node.0")
    lines = numbered(10)
    journal.append(lines[:5], segment_bytes=10)
    journal.append(lines[5:], segment_bytes=10)
    first = tmp_path / "node.0.000000000000.log"
    (tmp_path / "node.0.000000000000.sum").unlink()
    (tmp_path / "node.0.000000000000.lines").rename(first)
    os.truncate(first, sum(len(one) + 1 for one in lines[:3]))
    assert whole(Journal(tmp_path, "node.0")) == lines[:3] + lines[5:]


def test_a_full_volume_keeps_whole_lines_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path, "node.0")
    journal.append(numbered(2), segment_bytes=LARGE)
    real, calls = os.write, []

    def write(descriptor: int, data: Any) -> int:
        calls.append(1)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, bytes(data)[:7])

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="No space"):
        journal.append(numbered(2, 2), segment_bytes=LARGE)
    monkeypatch.undo()
    assert whole(journal) == numbered(2)
    journal.append(numbered(2, 2), segment_bytes=LARGE)
    assert whole(Journal(tmp_path, "node.0")) == numbered(4)


def test_a_full_volume_leaves_no_empty_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path, "node.0")
    journal.append(numbered(2), segment_bytes=LARGE)
    monkeypatch.setattr(os, "write", _raise_full)
    with pytest.raises(OSError, match="No space"):
        journal.append(numbered(2, 2), segment_bytes=1)
    monkeypatch.undo()
    assert journal.segments == 1
    journal.append(numbered(2, 2), segment_bytes=1)
    assert whole(Journal(tmp_path, "node.0")) == numbered(4)


def _raise_full(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


@settings(max_examples=60, deadline=None)
@given(
    printed=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.text("ab ", max_size=6)), max_size=60),
    kills=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 400), st.binary(max_size=9)), max_size=5),
    segment=st.sampled_from([64, 300, LARGE]),
)
def test_any_process_killed_anywhere_keeps_every_line_once(
    tmp_path_factory: pytest.TempPathFactory,
    printed: list[tuple[int, int, str]],
    kills: list[tuple[int, int, bytes]],
    segment: int,
) -> None:
    """Each kill: so many lines were read, so many bytes at the end did not reach the disk, and some garbage did."""
    folder = tmp_path_factory.mktemp("journal")
    base, lines = START, []
    for step, back, text in printed:
        base += step * 400_000_000
        lines.append(line(base - back * 300_000_000, text))
    file = LogFile(lines)
    for taken, lost, garbage in [*kills, (len(lines), 0, b"")]:
        journal = Journal(folder, "node.0")
        newest = journal.newest()
        resumption = Resumption([] if newest is None else journal.since(resumed_from(newest)))
        stream = file.read(None if newest is None else since_time(newest))
        for one in stream[:taken]:
            journal.append(resumption.feed([one]), segment_bytes=segment)
        assert not resumption.gap
        journal.close()
        _crash(folder, lost, garbage)
    assert whole(Journal(folder, "node.0")) == lines


def _crash(folder: Path, lost: int, garbage: bytes) -> None:
    paths = sorted(folder.glob("*.lines"))
    if paths and (lost or garbage):
        last = paths[-1]
        os.truncate(last, max(0, last.stat().st_size - lost))
        with last.open("ab") as file:
            file.write(garbage.replace(b"\n", b" "))
