from __future__ import annotations

from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cache.plans import plan
from trainplane.cache.blocks import Blocks
from trainplane.cache.order import Order, Tail, remaining, share, shuffled

TAILS: list[Tail] = ["repeat", "drop", "ragged"]


def positions(spans: list[tuple[int, int]]) -> list[int]:
    return [position for start, stop in spans for position in range(start, stop)]


def rows(order: Order, blocks: Blocks, spans: list[tuple[int, int]]) -> list[int]:
    """Return the numbers of the rows that stand at some positions."""
    found = []
    for piece in order.pieces(spans):
        begin, end = blocks.span(piece.block)
        places = order.rows(piece.block, end - begin)
        inner = np.arange(end - begin) if places is None else places
        found += (begin + inner[piece.start : piece.stop]).tolist()
    return found


@given(st.integers(0, 3000), st.integers(-(1 << 60), 1 << 60))
def test_a_shuffle_is_a_permutation(count: int, key: int) -> None:
    assert sorted(shuffled(count, key)) == list(range(count))


def test_a_shuffle_is_the_same_for_ever() -> None:
    assert shuffled(8, 1, 2, 3).tolist() == [1, 0, 5, 6, 3, 7, 2, 4]
    assert shuffled(8, 1, 2, 4).tolist() != shuffled(8, 1, 2, 3).tolist()


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=8).filter(any), st.integers(1, 9), st.none() | st.integers(0, 99)
)
def test_an_epoch_has_every_row_once(counts: list[int], block_rows: int, seed: int | None) -> None:
    blocks = Blocks(plan(counts, block_rows))
    order = Order(blocks, seed, 3)
    found = rows(order, blocks, [(0, order.total)])
    assert sorted(found) == list(range(sum(counts)))
    assert seed is not None or found == sorted(found)


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    blocks = Blocks(plan([500, 300], 16))
    orders = [tuple(rows(Order(blocks, seed, epoch), blocks, [(0, 800)])) for seed in (1, 2) for epoch in (0, 1)]
    assert len(set(orders)) == 4


@pytest.mark.parametrize("world", [1, 3, 8])
def test_which_row_stands_where_does_not_depend_on_the_world(world: int) -> None:
    blocks = Blocks(plan([97, 54], 10))
    order = Order(blocks, 7, 0)
    whole = rows(order, blocks, [(0, order.total)])
    parts = [rows(order, blocks, share([(0, order.total)], world, rank, "ragged")) for rank in range(world)]
    assert list(chain(*parts)) == whole


@given(st.integers(1, 200), st.integers(1, 12), st.sampled_from(TAILS))
def test_shares_are_equal_and_leave_out_no_more_than_they_say(total: int, world: int, tail: Tail) -> None:
    shares = [positions(share([(0, total)], world, rank, tail)) for rank in range(world)]
    sizes = {len(one) for one in shares}
    had = list(chain(*shares))
    if tail == "ragged":
        assert max(sizes) - min(sizes) <= 1
        assert sorted(had) == list(range(total))
    else:
        assert len(sizes) == 1
    if tail == "repeat":
        assert set(had) == set(range(total))
        assert len(had) - total < world
    if tail == "drop":
        assert len(set(had)) == len(had) > total - world


@given(
    st.integers(1, 300),
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 60)), max_size=4),
    st.integers(1, 9),
    st.sampled_from(TAILS),
)
def test_worlds_that_follow_each_other_in_an_epoch_have_every_row_once(
    total: int, steps: list[tuple[int, int]], last: int, tail: Tail
) -> None:
    had: list[int] = []
    repeated = 0
    for at, (world, done) in enumerate(steps):
        left = remaining([(0, total)], steps[:at], tail)
        shares = [positions(share(left, world, rank, tail)) for rank in range(world)]
        repeated += world
        had += chain(*(one[:done] for one in shares))
    left = remaining([(0, total)], steps, tail)
    had += chain(*(positions(share(left, last, rank, tail)) for rank in range(last)))
    if tail == "ragged":
        assert sorted(had) == list(range(total))
    if tail == "repeat":
        assert set(had) == set(range(total))
        assert len(had) <= total + repeated + last
    if tail == "drop":
        assert len(set(had)) == len(had) > total - last


@given(st.lists(st.integers(0, 40), min_size=1, max_size=8).filter(any), st.integers(1, 9))
def test_blocks_are_numbered_through_the_dataset(counts: list[int], block_rows: int) -> None:
    blocks = Blocks(plan(counts, block_rows))
    spans = [blocks.span(block) for block in range(blocks.count)]
    assert spans[0][0] == 0
    assert spans[-1][1] == sum(counts)
    assert all(one[1] == other[0] for one, other in pairwise(spans))
    assert [stop - start for start, stop in spans] == blocks.rows.tolist()
    for fragment in range(len(counts)):
        assert all(blocks.fragment(block) == fragment for block in blocks.of(fragment))
        assert [blocks.within(block) for block in blocks.of(fragment)] == list(range(len(blocks.of(fragment))))


@given(st.lists(st.integers(0, 40), min_size=1, max_size=8).filter(any), st.integers(1, 9), st.data())
def test_rows_are_found_in_their_blocks(counts: list[int], block_rows: int, data: st.DataObject) -> None:
    blocks = Blocks(plan(counts, block_rows))
    start = data.draw(st.integers(0, blocks.total))
    stop = data.draw(st.integers(start, blocks.total))
    found = [
        blocks.span(block)[0] + row for block, low, high in blocks.covering(start, stop) for row in range(low, high)
    ]
    assert found == list(range(start, stop))
