"""Shares and pairs as the reference counts and writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainplane.cache.errors import DeniedError, InvalidError, PartitionError
from trainplane.cache.reference import pair, rows, share


@given(st.integers(1, 5_000), st.integers(1, 64))
def test_shares_are_all_rows_once(total: int, world: int) -> None:
    had: list[int] = []
    for rank in range(world):
        try:
            had += range(*share([str(rank), str(world)], total))
        except PartitionError:
            assert rank * -(-total // world) >= total
    assert had == list(range(total))


@pytest.mark.parametrize(
    ("start", "stop", "encoded"),
    [
        (0, 1, "0000"),
        (0, 251, "00fa"),
        (0, 252, "00fbfb00"),
        (251, 65_536, "fbfb00fbffff"),
        (0, 65_537, "00fc00000100"),
        (1, (1 << 32) + 1, "01fd0000000001000000"),
    ],
)
def test_a_pair_is_written_in_as_few_bytes_as_it_needs(start: int, stop: int, encoded: str) -> None:
    assert pair(start, stop).hex() == encoded
    assert rows(bytes.fromhex(encoded)) == (start, stop)


@given(st.integers(0, 1 << 53), st.integers(1, 1 << 20))
def test_a_pair_is_read_as_it_was_written(start: int, count: int) -> None:
    assert rows(pair(start, start + count)) == (start, start + count)


@given(st.binary(max_size=40))
def test_whatever_else_is_no_ticket(content: bytes) -> None:
    try:
        found = rows(content)
    except DeniedError:
        return
    assert found is None or pair(*found) == content


@pytest.mark.parametrize("content", ["", "00", "000000", "fb0500fb0600", "fe00", "00ff", "fb01"])
def test_what_is_cut_off_or_written_longer_than_needed_is_no_pair(content: str) -> None:
    assert rows(bytes.fromhex(content)) is None


@pytest.mark.parametrize(
    "path", [["1"], ["1", "2", "3"], ["a", "2"], ["-1", "2"], ["1", "2.0"], ["٣", "4"], ["1" * 10, "2"]]
)
def test_a_path_that_is_no_rank_and_world_is_refused(path: list[str]) -> None:
    with pytest.raises(InvalidError, match=r"is not \[rank, world\]"):
        share(path, 100)
