from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.hub.kubelet import SECOND, START, LogFile, line
from trainplane.kube.containerlogs import Resumption, Splitter, nanoseconds, resumed_from, since_time, stamp_of, text_of


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        (b"1970-01-01T00:00:01Z x", SECOND),
        (b"1970-01-01T00:00:01.5Z x", SECOND + SECOND // 2),
        (b"1970-01-01T00:00:01.000000007Z x", SECOND + 7),
        (b"1970-01-01T01:00:01.000000007+01:00 x", SECOND + 7),
        (b"1970-01-01T00:00:01Z", SECOND),
        (b"1970-01-01T00:00:01Zx", None),
        (b"unable to retrieve container logs for containerd://abc", None),
        (b"9999-99-99T00:00:00Z x", None),
        (b" 1970-01-01T00:00:01Z x", None),
        (b"", None),
    ],
)
def test_times_are_read(stamp: bytes, expected: int | None) -> None:
    assert nanoseconds(stamp) == expected


def test_text_is_what_was_printed() -> None:
    assert text_of(b"2026-11-15T05:11:08.123456789Z epoch 3  ") == b"epoch 3  "
    assert text_of(b"2026-11-15T05:11:08.123456789Z ") == b""
    assert text_of(b"2026-11-15T05:11:08.123456789Z 2026-11-15T05:11:08Z inner") == b"2026-11-15T05:11:08Z inner"


def test_the_time_is_given_as_it_is_written() -> None:
    assert stamp_of(b"2026-11-15T05:11:08.120Z epoch") == b"2026-11-15T05:11:08.120Z"
    assert stamp_of(b"unable to retrieve container logs") == b""


def test_resuming_asks_for_whole_seconds_before_the_last_line() -> None:
    newest = START + 5 * SECOND + 999_999_999
    assert resumed_from(newest) == START + 4 * SECOND
    moment = datetime.fromisoformat(since_time(newest))
    assert moment.timestamp() * SECOND == resumed_from(newest)
    assert moment.tzinfo == UTC


@given(st.lists(st.binary(max_size=12)), st.lists(st.integers(1, 7), min_size=1))
def test_lines_are_cut_the_same_however_they_arrive(parts: list[bytes], sizes: list[int]) -> None:
    text = b"\n".join(parts)
    splitter = Splitter(limit=8)
    found: list[bytes] = []
    position = turn = 0
    while position < len(text):
        size = sizes[turn % len(sizes)]
        found += splitter.feed(text[position : position + size])
        position, turn = position + size, turn + 1
    whole = text.split(b"\n")
    assert [*found, splitter.rest()] == [piece[:8] for piece in whole]


def _resumed(kept: list[bytes], stream: list[bytes], sizes: int = 1) -> tuple[list[bytes], bool]:
    resumption = Resumption(kept)
    new: list[bytes] = []
    for start in range(0, len(stream), sizes):
        new += resumption.feed(stream[start : start + sizes])
    return new, resumption.gap


def test_what_is_kept_is_dropped_and_what_is_new_is_not() -> None:
    a, b, c = line(START, "a"), line(START, "b"), line(START + 1, "c")
    assert _resumed([a, b], [a, b, c]) == ([c], False)
    assert _resumed([], [a, b, c]) == ([a, b, c], False)
    assert _resumed([a, b, c], [a, b, c]) == ([], False)


def test_equal_lines_of_one_moment_are_counted() -> None:
    same = line(START, "tick")
    assert _resumed([same, same], [same, same, same]) == ([same], False)


def test_a_later_line_with_an_earlier_time_is_new() -> None:
    kept, late = line(START + 5, "out"), line(START + 3, "err")
    assert _resumed([kept], [kept, late]) == ([late], False)


def test_a_log_that_was_rotated_within_what_is_kept_loses_nothing() -> None:
    a, b, c, d = (line(START + n, "x") for n in range(4))
    assert _resumed([a, b, c], [b, c, d]) == ([d], False)
    assert _resumed([a, b, c], [c, d]) == ([d], False)


def test_a_log_that_was_rotated_past_what_is_kept_has_a_gap() -> None:
    a, b, c, d = (line(START + n, "x") for n in range(4))
    assert _resumed([a, b], [c, d]) == ([c, d], True)


def test_a_false_start_is_found_out() -> None:
    a, b, c, d = (line(START, text) for text in "abcd")
    assert _resumed([a, b, a, c], [a, c, d]) == ([d], False)
    assert _resumed([a, b], [a, d]) == ([a, d], True)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.sampled_from("ab")), max_size=40),
    st.integers(0, 40),
    st.integers(1, 5),
)
def test_any_log_cut_anywhere_goes_on_without_gap_or_repeat(
    printed: list[tuple[int, int, str]], cut: int, sizes: int
) -> None:
    """Times are those of two streams whose lines may stand out of order by less than a second."""
    lines, base = [], START
    for step, back, text in printed:
        base += step * 400_000_000
        lines.append(line(base - back * 300_000_000, text))
    file = LogFile(lines)
    kept = lines[:cut]
    newest = nanoseconds(kept[-1]) if kept else None
    again = file.read(None if newest is None else since_time(newest))
    window = [] if newest is None else [one for one in kept if (nanoseconds(one) or 0) >= resumed_from(newest)]
    new, gap = _resumed(window, again, sizes)
    assert kept + new == lines
    assert not gap
