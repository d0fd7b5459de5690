"""What Sphinx is told of our pages, so that each reads the same on a Git host and on the site.

- The order of the site is written once, as links: the first page links to the sections, a section to its pages. Each
  gets a hidden table of contents of them. A page that no section names fails the build (Sphinx' warning of an orphan).
- A link to a folder of the checkout leads to the folder's README, and without one it is text.
"""  # noqa: INP001 an extension in the folder that Sphinx' settings name

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

FIRST = "docs/index"
SECTIONS = ("docs/tutorials", "docs/how-to", "docs/references/README", "docs/explanation")
BELOW = ("docs/frameworks/README",)
"""Pages of a section that have pages of their own."""
_PAGE = re.compile(r"\[([^\]]+)\]\(([^)\s#:]+)\.md\)")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s#:]+)\)")


def contents(page: str, text: str) -> dict[str, str]:
    """Return the pages that stand below one in the site's order, each with the words of the first link to it."""
    folder = posixpath.dirname(page)
    linked: dict[str, str] = {}
    for words, name in _PAGE.findall(text):
        linked.setdefault(posixpath.normpath(posixpath.join(folder, name)), words.strip("`"))
    if page == FIRST:
        return {one: words for one, words in linked.items() if one in SECTIONS}
    return {one: words for one, words in linked.items() if one not in {FIRST, *SECTIONS}}


def with_folders(page: str, text: str, root: Path) -> str:
    """Return a text whose links to folders lead to something that the site has."""

    def resolved(link: re.Match[str]) -> str:
        folder = root / posixpath.normpath(posixpath.join(posixpath.dirname(page), link[2]))
        if not folder.is_dir():
            return link[0]
        return f"[{link[1]}]({link[2].rstrip('/')}/README.md)" if (folder / "README.md").exists() else link[1]

    return _LINK.sub(resolved, text)


def _read(app: Any, page: str, source: list[str]) -> None:
    source[0] = with_folders(page, source[0], app.srcdir)
    if page in {FIRST, *SECTIONS, *BELOW}:
        below = "".join(f"{words} </{one}>\n" for one, words in contents(page, source[0]).items())
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n\n{below}```\n"


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", _read)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
