"""Lines of several sources, in the order of time as far as that can be known in time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainplane.client.backends.kubernetes.merging import Merger, MergeSettings
from trainplane.kube.testing.clock import FakeClock
from trainplane.kube.testing.podlogs import stamp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainplane.client.types.jobs import LogLine

START = 1_800_000_000_000_000_000
MILLI = 1_000_000


def line(millisecond: int, text: str = "x") -> bytes:
    return stamp(START + millisecond * MILLI) + b" " + text.encode()


class Reader:
    """What somebody who reads the merged lines has got so far."""

    def __init__(self, merger: Merger) -> None:
        self.lines: list[str] = []
        self._lines = merger.lines()
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for one in self._lines:
            self.lines.append(f"{one.step} {one.text}")

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self._lines.aclose()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def merger(clock: FakeClock) -> Merger:
    return Merger(
        clock,
        MergeSettings(hold_seconds=1.0, active_seconds=10.0, reconnect_seconds=30.0, lost_seconds=100.0, waiting=8),
    )


@pytest.fixture
async def reader(merger: Merger) -> AsyncIterator[Reader]:
    reader = Reader(merger)
    yield reader
    await reader.close()


async def test_one_source_waits_for_nobody(merger: Merger, reader: Reader, clock: FakeClock) -> None:
    await merger.source("a").put([line(1, "1"), line(2, "2")])
    await clock.settle()
    assert reader.lines == ["a 1", "a 2"]


async def test_lines_that_are_all_there_come_in_order_at_once(merger: Merger, reader: Reader, clock: FakeClock) -> None:
    a, b = merger.source("a"), merger.source("b")
    await a.put([line(1, "1"), line(4, "4")])
    await b.put([line(2, "2"), line(3, "3"), line(9, "9")])
    await clock.settle()
    assert reader.lines == ["a 1", "b 2", "b 3", "a 4"]  # b's last waits: a may still bring an earlier one


async def test_a_line_waits_for_an_idle_source_only_a_little_while(
    merger: Merger, reader: Reader, clock: FakeClock
) -> None:
    a, b = merger.source("a"), merger.source("b")
    a.connected()
    b.connected()
    await clock.advance(60)
    await a.put([line(5, "5")])
    await clock.advance(0.5)
    assert reader.lines == []
    await b.put([line(4, "4")])
    await clock.advance(10.1)
    assert reader.lines == ["b 4", "a 5"]
    await clock.advance(60)
    await a.put([line(7, "7")])
    await clock.advance(1.1)
    assert reader.lines[-1] == "a 7"


async def test_a_new_source_is_waited_for_until_its_first_line(
    merger: Merger, reader: Reader, clock: FakeClock
) -> None:
    a, b = merger.source("a"), merger.source("b")
    await a.put([line(5, "5")])
    await clock.advance(8)
    assert reader.lines == []
    await b.put([line(3, "3")])
    await clock.settle()
    assert reader.lines == ["b 3"]
    await clock.advance(10.1)
    assert reader.lines == ["b 3", "a 5"]


async def test_a_source_that_printed_just_now_is_waited_for_until_its_next_line(
    merger: Merger, reader: Reader, clock: FakeClock
) -> None:
    a, b = merger.source("a"), merger.source("b")
    await b.put([line(1, "1")])
    await a.put([line(5, "5")])
    for moment in (2, 3, 4):  # each sign of life lets others wait anew: no line of a source that prints on comes late
        await clock.advance(9)
        await b.put([line(moment, str(moment))])
    await clock.settle()
    assert reader.lines == ["b 1", "b 2", "b 3", "b 4"]
    await clock.advance(10.1)
    assert reader.lines[-1] == "a 5"


async def test_a_source_that_is_connected_again_is_waited_for_longer(
    merger: Merger, reader: Reader, clock: FakeClock
) -> None:
    a, b = merger.source("a"), merger.source("b")
    b.connected()
    b.connect()
    await clock.advance(60)
    await a.put([line(5, "5")])
    await clock.advance(25)
    assert reader.lines == []
    await b.put([line(3, "3")])
    await clock.advance(10.1)
    assert reader.lines == ["b 3", "a 5"]


async def test_a_source_that_stays_away_holds_nobody_up_for_ever(
    merger: Merger, reader: Reader, clock: FakeClock
) -> None:
    a, b = merger.source("a"), merger.source("b")
    b.connected()
    for _ in range(11):  # every try to connect fails
        b.connect()
        await clock.advance(10)
    await a.put([line(5, "5")])
    await clock.settle()
    assert reader.lines == ["a 5"]
    b.connected()
    await a.put([line(7, "7")])
    await b.put([line(6, "6")])
    await clock.settle()
    assert reader.lines == ["a 5", "b 6"]


async def test_a_source_that_ended_is_not_waited_for(merger: Merger, reader: Reader, clock: FakeClock) -> None:
    a, b = merger.source("a"), merger.source("b")
    await a.put([line(5, "5")])
    b.end()
    await clock.settle()
    assert reader.lines == ["a 5"]


async def test_within_a_source_the_order_is_its_own(merger: Merger, reader: Reader, clock: FakeClock) -> None:
    await merger.source("a").put([line(5, "5"), line(3, "late"), line(6, "6")])
    await clock.settle()
    assert reader.lines == ["a 5", "a late", "a 6"]


async def test_it_ends_when_it_is_closed_and_all_have_ended(merger: Merger, reader: Reader, clock: FakeClock) -> None:
    a = merger.source("a")
    await a.put([line(1, "1")])
    merger.close()
    await clock.settle()
    assert not reader.task.done()
    a.end()
    await clock.settle()
    assert reader.task.done()
    assert reader.lines == ["a 1"]


async def test_an_error_is_raised_where_lines_are_read(merger: Merger, reader: Reader, clock: FakeClock) -> None:
    merger.source("a")
    merger.close(ValueError("broken"))
    await clock.settle()
    with pytest.raises(ValueError, match="broken"):
        reader.task.result()


async def test_a_source_far_ahead_waits(merger: Merger, reader: Reader, clock: FakeClock) -> None:
    a, b = merger.source("a"), merger.source("b")
    putting = asyncio.create_task(a.put([line(number) for number in range(20)]))
    await clock.settle()
    assert not putting.done()
    await b.put([line(100)])
    await clock.settle()
    assert putting.done()
    assert len(reader.lines) == 20


async def test_an_exact_merge_waits_for_ever(clock: FakeClock) -> None:
    merger = Merger(clock, MergeSettings(exact=True))
    reader = Reader(merger)
    a, b = merger.source("a"), merger.source("b")
    await a.put([line(5, "5")])
    await clock.advance(3600)
    assert reader.lines == []
    b.end()
    await clock.settle()
    assert reader.lines == ["a 5"]
    await reader.close()


@given(
    st.lists(st.lists(st.integers(0, 50), max_size=12).map(sorted), min_size=1, max_size=5),
    st.lists(st.integers(0, 3), min_size=5, max_size=5),
)
def test_an_exact_merge_sorts_whatever_the_order_of_arrival(sources: list[list[int]], pauses: list[int]) -> None:
    async def merged() -> list[LogLine]:
        merger = Merger(FakeClock(), MergeSettings(exact=True, waiting=4))
        made = [merger.source(f"s{number}") for number in range(len(sources))]

        async def fill(number: int) -> None:
            for moment in sources[number]:
                for _ in range(pauses[number]):
                    await asyncio.sleep(0)
                await made[number].put([line(moment)])
            made[number].end()

        filling = [asyncio.create_task(fill(number)) for number in range(len(sources))]
        merger.close()
        found = [one async for one in merger.lines()]
        await asyncio.gather(*filling)
        return found

    found = asyncio.run(merged())
    times = [one.time for one in found if one.time]
    assert times == sorted(times)
    assert len(found) == sum(map(len, sources))
    for number, moments in enumerate(sources):
        assert sum(one.step == f"s{number}" for one in found) == len(moments)
