"""Links of a built site, checked offline: each leads to a file of the site, and there to a place that has the name."""  # noqa: INP001 beside what it checks, no package

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""What a browser fetches by itself."""


@dataclass
class Page:
    """What a page links to, what it loads, and the names that it can be linked to by."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.page.names |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.page.links.append(given["href"])
        if given.get(_LOADED.get(tag, "")):
            self.page.loads.append(given[_LOADED[tag]])


@functools.cache
def read(path: Path) -> Page:
    """Return what a page has."""
    reader = _Reader()
    reader.feed(path.read_text())
    return reader.page


def is_external(link: str) -> bool:
    """Return whether a link leaves the site."""
    return bool(urlsplit(link).scheme or urlsplit(link).netloc)


def lost(folder: Path) -> Iterator[str]:
    """Yield the links of a version's pages that lead nowhere, each with its page."""
    for path in sorted(folder.rglob("*.html")):
        page = read(path)
        for link in (*page.links, *page.loads):
            if not is_external(link) and not _leads_somewhere(path, link):
                yield f"{path.relative_to(folder)}: {link}"


def _leads_somewhere(path: Path, link: str) -> bool:
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        return False
    return not parts.fragment or target.suffix != ".html" or unquote(parts.fragment) in read(target).names


def external(folder: Path) -> list[str]:
    """Return the links that leave the site, each once: they are listed, and nobody is asked."""
    return sorted({link for path in folder.rglob("*.html") for link in read(path).links if is_external(link)})


def fetched(folder: Path) -> list[str]:
    """Return what pages would have a browser fetch from elsewhere: a site without a way out must look the same."""
    return sorted({load for path in folder.rglob("*.html") for load in read(path).loads if is_external(load)})
