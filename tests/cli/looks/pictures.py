"""All that is looked at, each as a file that Chromium opens: pages on two sizes of screens, terminals of two sizes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.cli.looks.browser import SCREENS, Screen
from tests.cli.looks.scenes import pages
from tests.cli.looks.screens import SCREENS as TERMINALS
from tests.cli.looks.screens import SIZES
from tests.cli.looks.terminal import capture, terminal_page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_CELL: Final = (8.43, 18)
"""Pixels of a letter of a terminal, and of a line."""


@dataclass(frozen=True)
class Picture:
    """A file on a screen."""

    name: str
    file: Path
    screen: Screen


def page_pictures(folder: Path) -> Iterator[Picture]:
    """Write the pages into a folder; yield each on each screen."""
    for name, text in pages().items():
        file = folder / f"{name}.html"
        file.write_text(text)
        for screen in SCREENS:
            yield Picture(f"{name}-{screen.label}", file, screen)


def terminal_pictures(folder: Path, sizes: Sequence[tuple[int, int]] = SIZES) -> Iterator[Picture]:
    """Let tmux show the screens of `watch` and `top`, and write what it captured; yield each, light and dark."""
    for name, sign in TERMINALS.items():
        for columns, rows in sizes:
            captured = capture([sys.executable, "-m", "tests.cli.looks.screens", name], columns, rows, until=sign)
            for dark in (False, True):
                size = round(columns * _CELL[0]) + 16, rows * _CELL[1] + 16
                screen = Screen(f"{columns}x{rows}", *size, dark=dark)
                file = folder / f"{name}-{screen.label}.html"
                file.write_text(terminal_page(captured, columns, dark=dark))
                yield Picture(f"{name}-{screen.label}", file, screen)
