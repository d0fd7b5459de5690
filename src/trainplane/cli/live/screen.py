"""The terminal under the views: a screen of its own, drawn again when what it shows changes, left as it was."""

from __future__ import annotations

import asyncio
import sys
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

from rich.console import Console
from rich.live import Live
from rich.text import Text

from trainplane.cli.live.cells import ASCII, UNICODE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

    from trainplane.cli.live.cells import Glyphs

    View = Callable[[datetime, int, int, Glyphs], Sequence[Text]]
    """What is shown, of a time, a width, a height and the signs that the terminal has."""

T = TypeVar("T")
TICK: Final = 1.0
"""Seconds after which a screen is drawn again without news: times on it go on, and its size may have changed."""
SHORTEST: Final = 0.2
"""Seconds between two drawings: what changes faster nobody reads."""


class Screen:
    """Where views are shown: a terminal's whole screen while `open`, and lines that stay with `leave`."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(file=sys.stdout, highlight=False, soft_wrap=False)
        self._glyphs = UNICODE if self._console.encoding.lower().startswith("utf") else ASCII
        self._live: Live | None = None
        self._shown: tuple[int, int, Text] | None = None

    @property
    def is_live(self) -> bool:
        """Whether this is a terminal that can be drawn on."""
        return self._console.is_terminal and not self._console.is_dumb_terminal

    @contextmanager
    def open(self) -> Iterator[None]:
        """Take the screen; give it back whatever happens."""
        with Live(console=self._console, screen=True, auto_refresh=False, transient=True) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def show(self, view: View) -> None:
        """Draw a view, if it differs from what is there."""
        width, height = self._console.size
        drawn = width, height, _text(view(datetime.now(UTC), width, height, self._glyphs))
        if self._live is not None and drawn != self._shown:
            self._shown = drawn
            self._live.update(drawn[2], refresh=True)

    def leave(self, view: View, height: int) -> None:
        """Print a view of so many rows below what was printed before."""
        self._console.print(_text(view(datetime.now(UTC), self._console.size.width, height, self._glyphs)))


async def redraw(source: AsyncGenerator[T, None], draw: Callable[[T], None], tick: float = TICK) -> T | None:
    """Draw the newest thing of a source as it comes, and again after each `tick` without one; return the last.

    Things that come while one is drawn are not drawn one by one. Ends and fails as the source does.
    """
    newest: list[T] = []
    came = asyncio.Event()

    async def take() -> None:
        async for one in source:
            newest[:] = [one]
            came.set()

    taking = asyncio.create_task(take())
    taking.add_done_callback(lambda _: came.set())
    try:
        while not taking.done():
            with suppress(TimeoutError):
                async with asyncio.timeout(tick):
                    await came.wait()
            came.clear()
            if newest:
                draw(newest[0])
            await asyncio.wait([taking], timeout=SHORTEST)
        await taking
    finally:
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)
        await source.aclose()
    return newest[0] if newest else None


def _text(lines: Sequence[Text]) -> Text:
    text = Text("\n", no_wrap=True, overflow="crop").join(lines)
    text.no_wrap, text.overflow = True, "crop"
    return text
