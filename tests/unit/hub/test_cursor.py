"""Where a log begins to be shown, against a plain reading of all lines; and how little is held on the way."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.hub.kubelet import SECOND, START, line
from trainplane.hub.apiserver import logs
from trainplane.hub.apiserver.cursor import Beginning, Cursor
from trainplane.hub.apiserver.logform import Form
from trainplane.hub.apiserver.logquery import LogQuery, Rank, Run
from trainplane.hub.logarchive.journal import Journal
from trainplane.hub.logarchive.lines import NOTE, note, text_of
from trainplane.kube.containerlogs import nanoseconds

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from hypothesis.strategies import DataObject

RANK = Rank("node", 0)


def journal_of(folder: Path, lines: list[bytes], segment_bytes: int = 1 << 14) -> Journal:
    journal = Journal(folder, "node.0")
    for begin in range(0, len(lines), 50):
        journal.append(lines[begin : begin + 50], segment_bytes=segment_bytes)
    return journal


def shown(journal: Journal, now: int = START, **query: int) -> list[bytes]:
    """Return the lines from where a query begins."""
    beginning = Beginning(journal, LogQuery(**query), now, journal.end)  # type: ignore[arg-type]
    for _ in beginning.search():
        pass
    cursor = Cursor(RANK, journal, beginning.found, journal.end)
    found = []
    while block := cursor.block():
        found += block[:-1].split(b"\n")
    return found


texts = st.text(st.characters(codec="ascii", exclude_characters="\n\r"), max_size=40)
kept = st.lists(st.tuples(st.booleans(), texts), max_size=300)


@given(lines=kept, tail=st.integers(0, 320), data=st.data())
def test_the_last_lines_are_counted_without_remarks(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[bool, str]], tail: int, data: DataObject
) -> None:
    stamped = [line(START + n * SECOND, text) for n, (_, text) in enumerate(lines)]
    written = [note(one, "remark") if is_note else one for one, (is_note, _) in zip(stamped, lines, strict=True)]
    journal = journal_of(tmp_path_factory.mktemp("journal"), written, data.draw(st.sampled_from([500, 1 << 20])))
    found = shown(journal, tail_lines=tail)
    assert written[len(written) - len(found) :] == found
    counted = sum(not one.startswith(NOTE) for one in found)
    assert counted == min(tail, sum(not one.startswith(NOTE) for one in written))


@given(
    gaps=st.lists(st.integers(0, 3), max_size=300), size=st.sampled_from([10, 300, 5000]), seconds=st.integers(0, 400)
)
def test_lines_that_are_not_older_are_found_by_halving(
    tmp_path_factory: pytest.TempPathFactory, gaps: list[int], size: int, seconds: int
) -> None:
    times = [START + sum(gaps[: n + 1]) * SECOND for n in range(len(gaps))]
    written = [line(time, "x" * size) for time in times]
    journal = journal_of(tmp_path_factory.mktemp("journal"), written)
    now = times[-1] if times else START
    assert shown(journal, now, since_seconds=seconds) == [
        one for one, time in zip(written, times, strict=True) if time >= now - seconds * SECOND
    ]


def test_a_recent_beginning_takes_few_steps_in_a_long_log(tmp_path: Path) -> None:
    journal = journal_of(tmp_path, [line(START + n * SECOND, "x" * 100) for n in range(100_000)], 1 << 20)
    now = START + 100_000 * SECOND
    for query, most in (({"since_seconds": 60}, 20), ({"tail_lines": 50}, 2), ({"tail_lines": 999_999_999}, 0)):
        beginning = Beginning(journal, LogQuery(**query), now, journal.end)  # type: ignore[arg-type]
        assert len(list(beginning.search())) <= most
    assert len(shown(journal, now, since_seconds=60)) == 60
    assert len(shown(journal, now, since_seconds=60, tail_lines=7)) == 7
    assert len(shown(journal, now, since_seconds=60, tail_lines=70)) == 60


def test_counting_far_back_is_cut_into_steps(tmp_path: Path) -> None:
    journal = journal_of(tmp_path, [line(START + n, "x") for n in range(50_000)], 1 << 20)
    beginning = Beginning(journal, LogQuery(tail_lines=40_000), START, journal.end)
    assert 15 <= len(list(beginning.search())) <= 30


@given(lines=st.lists(st.tuples(st.sampled_from([b"", NOTE]), texts), min_size=1, max_size=20), stamps=st.booleans())
def test_blocks_are_shown_as_lines_are(lines: list[tuple[bytes, str]], stamps: bool) -> None:
    written = [mark + line(START, text) for mark, text in lines]
    data = b"".join(one + b"\n" for one in written)
    expected = [one.removeprefix(NOTE) if stamps else text_of(one) for one in written]
    for rank, mark in ((0, b""), (None, b"[node-0] ")):
        text = Form(LogQuery(timestamps=stamps, rank=rank)).show(RANK, data)
        assert text == b"".join(mark + one + b"\n" for one in expected)


def test_many_ranks_of_long_lines_are_merged_one_line_at_a_time(tmp_path: Path) -> None:
    ranks, runs = 40, {}
    for number in range(ranks):
        (tmp_path / str(number)).mkdir()
        lines = [line(START + n * SECOND + number, chr(97 + n) * 500_000) for n in range(2)]
        journal = journal_of(tmp_path / str(number), lines, 1 << 22)
        runs[Rank("node", number)] = (Run(None, "node", 0, journal), journal.end)  # type: ignore[arg-type] # of no pod
    tracemalloc.start()
    try:
        order, most = [], 0
        for chunk in logs.show(runs, LogQuery(rank=None), START):
            most = max(most, tracemalloc.get_traced_memory()[0])
            order += [one[: len("[node-00] x")].strip() for one in chunk.split(b"\n") if one]
    finally:
        tracemalloc.stop()
    assert [one.rstrip(b"ab") for one in order] == [b"[node-%d] " % (n % ranks) for n in range(2 * ranks)]
    assert most < 4_000_000, "40 lines of half a megabyte would be 20"


def test_a_time_is_found_in_lines_with_none(tmp_path: Path) -> None:
    written = [b"no time at all", line(START, "a"), b"!" + line(START, "remark"), line(START + SECOND, "b")]
    journal = journal_of(tmp_path, written)
    assert [nanoseconds(one) for one in written] == [None, START, None, START + SECOND]
    assert shown(journal, START + SECOND, since_seconds=0) == written[-1:]
    assert shown(journal, START + SECOND, since_seconds=1) == written[1:]
