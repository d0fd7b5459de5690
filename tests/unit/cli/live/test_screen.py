"""The terminal: drawn when something changed, given back whatever happens."""

from __future__ import annotations

import asyncio
import io
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from trainplane.cli.live.cells import ASCII, UNICODE, line
from trainplane.cli.live.screen import Screen, redraw

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from datetime import datetime

    from rich.text import Text

    from trainplane.cli.live.cells import Glyphs

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


def a_terminal(out: io.StringIO | io.TextIOWrapper) -> Console:
    return Console(file=out, force_terminal=True, width=40, height=5, color_system=None, _environ={"TERM": "xterm"})


def says(text: str) -> object:
    def view(now: datetime, width: int, height: int, glyphs: Glyphs) -> Sequence[Text]:
        del now, glyphs
        return [line(f"{text} {width}x{height}")]

    return view


def test_the_screen_is_taken_drawn_and_given_back() -> None:
    out = io.StringIO()
    screen = Screen(a_terminal(out))
    assert screen.is_live
    with screen.open():
        screen.show(says("hello"))  # type: ignore[arg-type] # a view
        once = out.getvalue()
        screen.show(says("hello"))  # type: ignore[arg-type] # a view
        assert out.getvalue() == once, "what has not changed is not drawn again"
    assert ENTER in once
    assert "hello 40x5" in once
    assert out.getvalue().rstrip().endswith(LEAVE) or LEAVE in out.getvalue()


def test_the_screen_is_given_back_when_somebody_leaves() -> None:
    out = io.StringIO()
    screen = Screen(a_terminal(out))
    with pytest.raises(KeyboardInterrupt), screen.open():
        raise KeyboardInterrupt
    assert LEAVE in out.getvalue()


def test_what_is_left_stays_in_plain_lines() -> None:
    out = io.StringIO()
    Screen(Console(file=out, width=40)).leave(says("bye"), 9)  # type: ignore[arg-type] # a view
    assert out.getvalue() == "bye 40x9\n"


def test_pipes_and_terminals_that_cannot_be_drawn_on_are_not_live() -> None:
    assert not Screen(Console(file=io.StringIO())).is_live
    dumb = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    assert not Screen(dumb).is_live


def test_signs_are_those_that_the_terminal_can_show() -> None:
    seen: list[Glyphs] = []

    def view(now: datetime, width: int, height: int, glyphs: Glyphs) -> Sequence[Text]:
        del now, width, height
        seen.append(glyphs)
        return []

    for encoding in ("ascii", "cp1252", "utf-8"):
        Screen(Console(file=io.TextIOWrapper(io.BytesIO(), encoding=encoding))).leave(view, 5)
    assert seen == [ASCII, ASCII, UNICODE]


async def test_the_newest_is_drawn_and_the_last_returned() -> None:
    drawn: list[int] = []

    async def numbers() -> AsyncGenerator[int, None]:
        for number in range(1000):
            yield number

    assert await redraw(numbers(), drawn.append) == 999
    assert drawn[-1] == 999
    assert len(drawn) < 1000, "what comes faster than it is drawn is not drawn one by one"


async def test_without_news_it_is_drawn_again_as_clocks_go_on() -> None:
    drawn: list[int] = []
    enough = asyncio.Event()

    async def one() -> AsyncGenerator[int, None]:
        yield 1
        await enough.wait()

    def draw(number: int) -> None:
        drawn.append(number)
        if len(drawn) == 3:
            enough.set()

    async with asyncio.timeout(60):
        await redraw(one(), draw, tick=0.01)
    assert drawn[:3] == [1, 1, 1]


async def test_a_source_that_fails_fails_the_drawing_and_nothing_is_drawn_of_nothing() -> None:
    async def some(*numbers: int, end: Exception | None = None) -> AsyncGenerator[int, None]:
        for number in numbers:
            yield number
        if end is not None:
            raise end

    drawn: list[int] = []
    with pytest.raises(ValueError, match="no"):
        await redraw(some(end=ValueError("no")), drawn.append)
    assert await redraw(some(), drawn.append) is None
    assert drawn == []


async def test_who_leaves_closes_the_source() -> None:
    closed = asyncio.Event()
    begun = asyncio.Event()

    async def endless() -> AsyncGenerator[int, None]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            closed.set()

    task = asyncio.create_task(redraw(endless(), lambda _: begun.set()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed.is_set()
