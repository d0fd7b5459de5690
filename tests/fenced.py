"""Fenced blocks of the documentation's pages, for tests that run what a page shows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    """Return the texts of a page's blocks in a language, in order."""
    return [found[2] for found in _FENCE.finditer(page.read_text()) if found[1] == language]
