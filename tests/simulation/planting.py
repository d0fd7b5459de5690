"""How a fault is put into a function from outside, and the functions that most faults are made of."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Planted(NamedTuple):
    """A fault: its name, where it goes, and what stands there with it."""

    name: str
    place: Any
    attribute: str
    replacement: Any
    theme: str = ""
    """The coincidence without which nobody could see it; empty if any history may show it."""

    @contextlib.contextmanager
    def put_in(self) -> Iterator[None]:
        """Have the fault for the time of a block."""
        with mock.patch.object(self.place, self.attribute, self.replacement):
            yield


def same(value: Any, *_: Any, **__: Any) -> Any:
    """Return the first argument: a step that does nothing."""
    return value


def returns(value: Any) -> Callable[..., Any]:
    """Return a function that answers the same whatever it is asked."""
    return lambda *_, **__: value


def later(value: Any) -> Callable[..., Any]:
    """Return a coroutine function that answers the same whatever it is asked."""

    async def answer(*_: Any, **__: Any) -> Any:
        return value

    return answer


async def clings(*_: Any) -> Any:
    """Wait for ever."""
    await asyncio.get_running_loop().create_future()


def around(original: Any, change: Callable[..., Any]) -> Any:
    """Return a function that calls `change` with the original before its arguments."""
    return lambda *arguments, **options: change(original, *arguments, **options)
