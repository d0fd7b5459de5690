"""How many read at once, and that none of them holds the loop."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack

import pytest

from trainplane.hub.apiserver.readers import Readers, ReaderSettings
from trainplane.hub.apiserver.status import status_of
from trainplane.hub.errors import TooManyReadersError


@pytest.mark.parametrize(
    ("settings", "who", "says"),
    [
        (ReaderSettings(user=2), ("ana", "other"), 'user "ana" reads 2 logs already'),
        (ReaderSettings(namespace=2), ("ben", "team"), '2 logs of namespace "team"'),
        (ReaderSettings(total=2), ("ben", "other"), "2 logs are being read"),
    ],
)
def test_who_is_one_too_many_is_told_what_and_how_many(
    settings: ReaderSettings, who: tuple[str, str], says: str
) -> None:
    readers = Readers(settings)
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(readers.admit("ana", "team"))
        with pytest.raises(TooManyReadersError) as caught, readers.admit(*who):
            pass
        status = status_of(caught.value)
        assert (status["code"], status["reason"]) == (429, "TooManyRequests")
        assert says in status["message"]
        assert "raised" in status["message"]
    with readers.admit(*who), readers.admit("ana", "team"):
        pass
    assert not readers._users
    assert not readers._namespaces
    readers.close()


async def test_chunks_are_made_in_threads_and_empty_ones_are_left_out() -> None:
    readers = Readers()
    threads = []

    def chunks() -> object:
        for chunk in (b"a", b"", b"", b"b"):
            threads.append(threading.current_thread())
            yield chunk

    assert [chunk async for chunk in readers.each(chunks())] == [b"a", b"b"]  # type: ignore[arg-type]
    assert threading.current_thread() not in threads
    readers.close()


async def test_readers_take_turns() -> None:
    """One that has much to count does not keep the next one waiting for all of it."""
    readers = Readers(ReaderSettings(threads=1))
    done = []

    async def consume(name: str, steps: int) -> None:
        async for _ in readers.each(iter([b""] * steps)):
            pass
        done.append(name)

    await asyncio.gather(consume("long", 1000), consume("short", 3))
    assert done == ["short", "long"]
    readers.close()


async def test_what_goes_wrong_in_a_thread_is_raised_where_text_is_read() -> None:
    readers = Readers()

    def broken() -> object:
        yield b"a"
        raise OSError("the volume is gone")

    text = readers.each(broken())  # type: ignore[arg-type]
    assert await anext(text) == b"a"
    with pytest.raises(OSError, match="volume"):
        await anext(text)
    readers.close()
