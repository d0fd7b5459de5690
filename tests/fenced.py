"""Fenced blocks of the documentation's pages, for tests that run what a page shows."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Fence(NamedTuple):
    """A block of a page: the number is its place among the page's blocks of its language, from 1."""

    language: str
    number: int
    text: str


def fences(page: Path) -> list[Fence]:
    """Return a page's blocks, in order."""
    seen: Counter[str] = Counter()
    found = []
    for language, text in _FENCE.findall(page.read_text()):
        seen[language] += 1
        found.append(Fence(language, seen[language], text))
    return found


def blocks(page: Path, language: str) -> list[str]:
    """Return the texts of a page's blocks in a language, in order."""
    return [one.text for one in fences(page) if one.language == language]
