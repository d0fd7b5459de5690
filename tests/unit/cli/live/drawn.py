"""What a terminal shows of a view."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text


def drawn(lines: Sequence[Text], width: int, height: int) -> str:
    """Return the screen as text, having seen that it fits and holds nothing that steers a terminal."""
    assert len(lines) <= height
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, color_system=None, legacy_windows=False)
    for line in lines:
        console.print(line, no_wrap=True, overflow="ignore", crop=False)
    shown = out.getvalue()
    rows = shown.splitlines()
    assert len(rows) == len(lines), "no line breaks in a line"
    assert max(map(cell_len, rows), default=0) <= width
    steering = {one for one in shown if not one.isprintable() and one not in "\n\u2068\u2069"}
    assert not steering
    assert shown.count("\u2068") == shown.count("\u2069")
    return shown
