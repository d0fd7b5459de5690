"""Changes and lines in one stream: all of them, the end last, and nothing left running."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.client.backend import FakeBackend, a_job, failed
from trainplane.client import following
from trainplane.client.errors import ForbiddenError, NotFoundError
from trainplane.client.following import follow
from trainplane.client.types.jobs import LogLine

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trainplane.client.following import News

LINES = [LogLine("node-0", "a"), LogLine("node-1", "b")]


async def all_of(backend: FakeBackend) -> list[News]:
    async with asyncio.timeout(60), aclosing(follow(backend, "job")) as news:
        return [one async for one in news]


async def test_the_end_comes_behind_the_last_line() -> None:
    created, running, complete = a_job("Created"), a_job("Running"), a_job("Complete")
    backend = FakeBackend(created, running, complete, lines=LINES)
    told = await all_of(backend)
    assert told[-1] is complete
    assert [one for one in told if isinstance(one, LogLine)] == LINES
    assert [one for one in told if one in (created, running)] == [created, running]
    assert backend.open_watches == 0


async def test_a_job_that_is_deleted_has_no_end() -> None:
    told = await all_of(FakeBackend(a_job("Running"), deleted=True, lines=LINES))
    assert [one for one in told if isinstance(one, LogLine)] == LINES
    assert [one for one in told if not isinstance(one, LogLine)] == [a_job("Running")]


class Unreadable(FakeBackend):
    """May not read pods."""

    async def read_logs(self, *_: Any, **__: Any) -> AsyncGenerator[LogLine, None]:
        for reason in ["you may not get pods/log here"]:
            raise ForbiddenError(reason)
        yield LogLine("node-0", "never")


async def test_lines_that_may_not_be_read_are_told_once_and_the_job_is_followed() -> None:
    told = await all_of(Unreadable(a_job("Running"), failed()))
    assert [type(one).__name__ for one in told].count("ForbiddenError") == 1
    assert told[-1] == failed()


async def test_a_job_that_is_not_there() -> None:
    with pytest.raises(NotFoundError, match="there is no TrainJob job"):
        await all_of(FakeBackend())


class Endless(FakeBackend):
    """Prints faster than anybody reads."""

    async def read_logs(self, *_: Any, **__: Any) -> AsyncGenerator[LogLine, None]:
        while True:
            self.calls.append(("line",))
            yield LogLine("node-0", "x")


async def test_no_more_is_kept_than_is_bounded_for_a_reader_who_is_slow() -> None:
    backend = Endless(a_job("Running"))
    async with asyncio.timeout(60), aclosing(follow(backend, "job")) as news:
        async for _ in news:
            if backend.calls:
                break
        for _ in range(10 * following.MOST_NEWS):
            await asyncio.sleep(0)
        assert len(backend.calls) <= following.MOST_NEWS + 2
    assert backend.open_watches == 0
