"""Text in the cells of a terminal: of one line, bounded, and steering nothing.

Names, messages, metrics and log lines are written by tenants and their programs. Whatever they hold, one text takes the
cells it was given: control characters are written out, a pile of marks on a letter is cut, and letters that are written
from right to left are kept from turning round what stands beside them.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from trainplane.cli.output import tame

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LONGEST: Final = 2000
"""Characters of a text that are looked at."""
_MARKS: Final = 2
"""Marks that a letter may carry."""
_VARIANTS: Final = range(0xFE00, 0xFE10)
"""Ask for a letter as a picture, which terminals give one cell or two."""
_ISOLATE: Final = "\u2068"
_END: Final = "\u2069"
_TURNING: Final = frozenset({"R", "AL", "AN"})


@dataclass(frozen=True)
class Glyphs:
    """The signs that views are drawn with."""

    running: str = "■"
    again: str = "▣"
    pending: str = "□"
    absent: str = "·"
    done: str = "✓"
    failed: str = "✗"
    unknown: str = "?"
    full: str = "━"
    empty: str = "─"
    levels: str = " ▁▂▃▄▅▆▇█"
    """Of a chart, from nothing to all of a cell."""
    then: str = "▸"
    do: str = "→"
    more: str = "…"


UNICODE: Final = Glyphs()
ASCII: Final = Glyphs("R", "r", "P", ".", "S", "F", "?", "#", "-", " .:-=+*%#", ">", ">", "~")
"""For terminals that have no others."""


def plain(text: str, most: int = LONGEST) -> str:
    """Return a text as one line without anything that steers a terminal."""
    bare = "".join(one for one in text[:most] if ord(one) not in _VARIANTS)
    return _without_piles(tame(" ".join(bare.split())))


def cell(text: str, width: int, more: str = UNICODE.more) -> str:
    """Return a text that takes at most `width` cells; what is cut is marked."""
    shown = plain(text)
    if cell_len(shown) > width:
        shown = set_cell_size(shown, max(0, width - cell_len(more))).rstrip() + more if width > 0 else ""
    return f"{_ISOLATE}{shown}{_END}" if _turns(shown) else shown


def column(text: str, width: int, more: str = UNICODE.more) -> str:
    """Return a text that takes exactly `width` cells."""
    shown = cell(text, width, more)
    return shown + " " * (width - cell_len(shown))


def line(*parts: str | tuple[str, str] | Text) -> Text:
    """Return a line of texts, each with its style where it has one. None of them is read as markup."""
    return Text.assemble(*parts, no_wrap=True, overflow="crop", end="")


def wrapped(text: str, width: int, most: int, more: str = UNICODE.more) -> list[str]:
    """Return a text in at most `most` lines of `width` cells, broken between words where that can be."""
    lines: list[str] = []
    left = plain(text)
    while left and len(lines) < most - 1 and cell_len(left) > width:
        head = set_cell_size(left, width)
        cut = head.rfind(" ") if not left[len(head.rstrip()) :].startswith(" ") else len(head.rstrip())
        at = cut if cut > width // 3 else len(head.rstrip())
        lines.append(cell(left[:at], width, more))
        left = left[at:].lstrip()
    return [*lines, cell(left, width, more)] if left and most > 0 else lines


def spaced(parts: Sequence[Sequence[Text]], last: Sequence[Text], height: int) -> list[Text]:
    """Return parts of a screen with an empty line between them where there is room, and `last` in its last rows."""
    there = [part for part in parts if part]
    spare = height - sum(map(len, there)) - len(last)
    found: list[Text] = []
    for number, part in enumerate(there):
        if number and spare > 0:
            found.append(line(""))
            spare -= 1
        found += part
    return [*found, *(line("") for _ in range(spare if last else 0)), *last]


def fitted(lines: Iterable[Text], width: int, height: int) -> list[Text]:
    """Return the lines that fit: the last guard, behind views that count their cells."""
    kept = list(lines)[:height]
    for one in kept:
        one.truncate(width)
        one.append(_END * (one.plain.count(_ISOLATE) - one.plain.count(_END)))
    return kept


def _turns(text: str) -> bool:
    return not text.isascii() and any(unicodedata.bidirectional(one) in _TURNING for one in text)


def _without_piles(text: str) -> str:
    if text.isascii():
        return text
    kept: list[str] = []
    pile = 0
    for one in text:
        pile = pile + 1 if unicodedata.category(one).startswith("M") else 0
        if pile <= _MARKS:
            kept.append(one)
    return "".join(kept)
