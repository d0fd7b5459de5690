from __future__ import annotations

import asyncio

import pytest

from trainplane.client.together import together


async def give(value: str) -> str:
    await asyncio.sleep(0)
    return value


async def test_all_are_returned_in_their_order() -> None:
    assert await together(give("a"), give("b"), give("c")) == ("a", "b", "c")


async def test_the_failure_of_one_ends_the_others_before_it_is_told() -> None:
    ended = asyncio.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await together(wait(), fail())
    assert ended.is_set()
