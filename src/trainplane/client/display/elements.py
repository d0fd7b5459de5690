"""Pieces of HTML. All text is escaped on its way in, so what a job printed cannot become markup.

Styles stand in the elements: a notebook keeps no style sheet of ours, and GitHub and exporters drop them. Colours are
readable on light and dark pages: text has the page's own, lines are a translucent grey, and what is filled brings the
colour of its text along.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from trainplane.client.display.facts import printable
from trainplane.client.display.tables import COLOURED

if TYPE_CHECKING:
    from trainplane.client.display.tables import Table

GREY, BLUE, GREEN, RED, AMBER = "#57606a", "#0b62c4", "#1a7f37", "#c31f2c", "#8a5a00"
COLOURS: Final = {
    "Created": GREY,
    "Pending": GREY,
    "Unknown": GREY,
    "Suspended": AMBER,
    "Warning": AMBER,
    "Running": BLUE,
    "Complete": GREEN,
    "Succeeded": GREEN,
    "Failed": RED,
}
"""Each at least 4.5:1 against the white text on it."""

_LINE: Final = "1px solid rgba(128,128,128,.35)"
_CELL: Final = f"text-align:left;vertical-align:top;padding:3px 12px 3px 0;border:0;border-bottom:{_LINE}"
_SHORT: Final = f"{_CELL};white-space:nowrap"
_MONO: Final = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace"


class Html(str):
    """HTML that is whole: every element in it is closed, all text escaped."""

    __slots__ = ()


def element(tag: str, *children: str, style: str = "", **attributes: str) -> Html:
    """Return an element; children that are not `Html` are text."""
    given = {"style": style} | {name.replace("_", "-"): value for name, value in attributes.items()}
    inside = "".join(child if isinstance(child, Html) else escape(printable(child)) for child in children)
    said = "".join(f' {name}="{escape(value)}"' for name, value in given.items() if value)
    return Html(f"<{tag}{said}>{inside}</{tag}>")


def box(*children: str) -> Html:
    """Return the frame around all that is shown of one thing."""
    return element(
        "div", *children, style=f"max-width:960px;border:{_LINE};border-radius:6px;padding:8px 12px;font-size:13px"
    )


def badge(word: str) -> Html:
    """Return a status in its colour."""
    style = (
        f"display:inline-block;background:{COLOURS.get(word, GREY)};color:#fff;border-radius:9px;padding:0 8px;"
        "font-size:12px;line-height:18px;white-space:nowrap"
    )
    return element("span", word, style=style)


def faint(*children: str) -> Html:
    """Return what may be overlooked."""
    return element("div", *children, style="opacity:.75;margin-top:4px")


def mono(text: str) -> Html:
    """Return a name that is there to be copied."""
    return element("span", text, style=_MONO)


def bar(done: int, label: str, colour: str) -> Html:
    """Return a progress bar with its meaning beside it."""
    filled = element("div", style=f"width:{done}%;height:8px;background:{colour};border-radius:4px")
    track = element(
        "div",
        filled,
        style="flex:0 0 240px;height:8px;background:rgba(128,128,128,.3);border-radius:4px",
        role="progressbar",
        aria_valuemin="0",
        aria_valuemax="100",
        aria_valuenow=str(done),
    )
    words = element("span", label)
    return element("div", track, words, style="display:flex;align-items:center;gap:10px;margin-top:6px")


def note(colour: str, *children: str) -> Html:
    """Return a paragraph that must not be overlooked."""
    return element("div", *children, style=f"border-left:3px solid {colour};padding-left:9px;margin-top:8px")


def folded(title: str, content: Html, *, opened: bool) -> Html:
    """Return something that can be folded away."""
    summary = element("summary", title, style="cursor:pointer")
    extra = {"open": "open"} if opened else {}
    return element("details", summary, content, style="margin-top:8px", **extra)


def printed(lines: tuple[str, ...]) -> Html:
    """Return lines of a log."""
    style = (
        f"{_MONO};font-size:12px;white-space:pre-wrap;overflow-wrap:anywhere;max-height:240px;overflow:auto;"
        "margin:4px 0;padding:6px 8px;background:rgba(128,128,128,.12);color:inherit;border-radius:4px"
    )
    return element("pre", "\n".join(lines), style=style)


def grid(table: Table) -> Html:
    """Return a table; its status column is coloured."""
    head = element("tr", *(element("th", header, style=f"{_SHORT};opacity:.75") for header in table.headers))
    rows = (element("tr", *map(_cell, table.headers, row, _styles(table))) for row in table.rows)
    return element(
        "div",
        element(
            "table",
            element("thead", head),
            element("tbody", *rows),
            style="border-collapse:collapse;margin:6px 0 0;font-size:13px;color:inherit",
        ),
        style="overflow-x:auto",
    )


def _styles(table: Table) -> list[str]:
    """Return the cells' styles: only the last column is wrapped."""
    return [_SHORT] * (len(table.headers) - 1) + [f"{_CELL};min-width:16em"]


def _cell(header: str, text: str, style: str) -> Html:
    return element("td", badge(text) if header in COLOURED and text else text, style=style)
