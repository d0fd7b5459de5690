"""Pieces of HTML. Every text and attribute passes one gate on its way in: bounded, printable, no credentials, escaped.

The gate stands where elements are made, so that no page can forget it: text is `str`, markup is `Html`, and only `tag`
makes the one of the other. No template engine: a template decides at each place whether to escape, a function of
twenty lines never does. Styles and scripts stand in files of their own, so the content policy may forbid all others.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from trainplane.client.display.elements import Html, element
from trainplane.explain.cleaning import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_TEXT: Final = 1024
"""Letters of one text."""
_SHORT: Final = 64
"""Letters of a text that is worth remembering."""
SYMBOLS: Final = {
    "Created": "○",
    "Pending": "○",
    "Suspended": "‖",
    "Queued": "‖",
    "Restarting": "↻",
    "Running": "▶",
    "Complete": "✓",
    "Succeeded": "✓",
    "Failed": "✗",
    "Warning": "!",
    "Connected": "✓",
    "Lost": "✗",
    "Active": "✓",
    "Stopped": "‖",
}
"""What says a state beside its word and its colour."""
TONES: Final = {
    "Suspended": "amber",
    "Queued": "amber",
    "Restarting": "amber",
    "Warning": "amber",
    "Running": "blue",
    "Complete": "green",
    "Succeeded": "green",
    "Failed": "red",
    "Connected": "green",
    "Lost": "red",
    "Active": "green",
    "Stopped": "amber",
}

__all__ = ["Html", "badge", "folded", "join", "section", "table", "tag", "terms"]


def tag(name: str, /, *children: str, **attributes: str) -> Html:
    """Return an element; children that are not `Html` are text. `class_` and `aria_label` name attributes."""
    said = {key.rstrip("_"): _gated(value) for key, value in attributes.items()}
    return element(name, *map(_gated, children), **said)


def _gated(text: str) -> str:
    if isinstance(text, Html):
        return text
    return _cleaned_once(text) if len(text) <= _SHORT else _cleaned(text)


def _cleaned(text: str) -> str:
    """Return a text that may be shown; a space at its end stays, for something follows it."""
    return clean(text, MOST_TEXT) + (" " if text.endswith(" ") else "")


_cleaned_once = lru_cache(4096)(_cleaned)
"""The same few hundred words make up most of a page of a thousand jobs."""


def join(*parts: str) -> Html:
    """Return parts one after the other, without an element around them."""
    return Html("".join(part if isinstance(part, Html) else tag("span", part) for part in parts))


def badge(word: str) -> Html:
    """Return a state: a symbol, its word, its colour."""
    symbol = tag("span", SYMBOLS.get(word, "·"), aria_hidden="true")
    return tag("span", symbol, f" {word}", class_=f"badge {TONES.get(word, 'grey')}")


def section(name: str, title: str, *children: str, live: bool = False) -> Html:
    """Return a part of a page under its heading; one that is live is replaced when it changes."""
    head = tag("h2", title, id=f"{name}-title")
    extra = {"data_live": "yes"} if live else {}
    return tag("section", head, *children, id=name, aria_labelledby=f"{name}-title", **extra)


def folded(name: str, title: str, content: Html, *, opened: bool = False) -> Html:
    """Return something that can be folded away; its name keeps it open when its part of the page is replaced."""
    extra = {"open": "open"} if opened else {}
    return tag("details", tag("summary", title), content, id=name, **extra)


def terms(pairs: Iterable[tuple[str, str]]) -> Html:
    """Return a list of what is called what; pairs without a value are left out."""
    rows = (tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs if value)
    return tag("dl", *rows, class_="terms")


def table(caption: str, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """Return a table, the first cell of each row its heading; a column that is empty in every row is left out.

    On a phone a style sheet lays rows out as cards, each cell under its header; the roles keep it a table for screen
    readers, for whom a browser would else take that for a heap of boxes.
    """
    listed = [tuple(row) for row in rows]
    used = [at for at in range(len(headers)) if at == 0 or any(row[at] for row in listed)]
    head = tag("tr", *(tag("th", headers[at], scope="col", role="columnheader") for at in used), role="row")
    body = (tag("tr", *(_cell(headers[at], row[at], first=at == 0) for at in used), role="row") for row in listed)
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", head, role="rowgroup"),
        tag("tbody", *body, role="rowgroup"),
        role="table",
    )


def _cell(header: str, value: str, *, first: bool) -> Html:
    if first:
        return tag("th", value, scope="row", role="rowheader", data_label=header)
    extra = {} if value else {"class_": "empty"}
    return tag("td", value, role="cell", data_label=header, **extra)
