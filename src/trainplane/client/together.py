"""Requests at the same time, all of which end: the failure of one ends the others before it is told.

`asyncio.gather` lets them go on, and one that goes on after its client was closed opens what nobody closes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Coroutine

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


@overload
async def together(a: Coroutine[Any, Any, A], b: Coroutine[Any, Any, B], /) -> tuple[A, B]: ...
@overload
async def together(
    a: Coroutine[Any, Any, A], b: Coroutine[Any, Any, B], c: Coroutine[Any, Any, C], /
) -> tuple[A, B, C]: ...
async def together(*work: Coroutine[Any, Any, Any]) -> tuple[Any, ...]:
    """Return what all of them return, in their order; raises what the first that fails raises."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return tuple(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
