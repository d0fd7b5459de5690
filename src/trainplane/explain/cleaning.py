"""Text that pods, nodes and other clusters wrote, made fit to be kept and shown: bounded, one line, without secrets.

Whatever comes out has no terminal sequences, no control characters, nothing that changes the direction of writing, and
no more letters than asked for. What goes in may be of any length; what is looked at of it is bounded first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from trainplane.explain.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_LETTERS: Final = 256
"""Of a kept line."""
MOST_LINES: Final = 12
"""Kept of a log."""
MOST_MESSAGE: Final = 512
"""Letters of a message."""
_LOOKED_AT: Final = 4
"""Letters of a text that are looked at, for each that may be kept: what is hidden makes room for what follows."""
_SEQUENCE: Final = re.compile(r"\x1b(?:\[[0-9;?]{0,32}[ -/]?[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[@-Z\\-_])")


def clean(text: Any, most: int = MOST_MESSAGE) -> str:
    """Return a text in one line of at most so many letters; empty for what is no text."""
    if not isinstance(text, str):
        return ""
    if len(text) > _LOOKED_AT * most:  # a word that was cut may be half a secret, which no pattern knows: it goes
        text = text[: _LOOKED_AT * most].rpartition(" ")[0] or f"[{len(text)} letters without a space]"
    shown = "".join(letter if letter.isprintable() else " " for letter in _SEQUENCE.sub("", text))
    shown = redact(shown.rstrip())
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def clean_lines(lines: Iterable[str]) -> list[str]:
    """Return lines, each in bounds; their indentation stays, for it says something in a traceback."""
    return [clean(line, MOST_LETTERS) for line in lines]
