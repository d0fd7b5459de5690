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
_SEQUENCE: Final = re.compile(r"\x1b(?:\[[0-9;?]{0,32}[ -/]?[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[@-Z\\-_])")


def clean(text: Any, most: int = MOST_MESSAGE) -> str:
    """Return a text in one line of at most so many letters, fit to be shown; empty for what is no text."""
    shown = redact(tame(text, most))
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def clean_lines(lines: Iterable[str]) -> list[str]:
    """Return lines, each in bounds; their indentation stays, for it says something in a traceback."""
    return [clean(line, MOST_LETTERS) for line in lines]


def tame(text: Any, most: int = MOST_LETTERS) -> str:
    """Return a text in one line and in bounds, to be looked at and not to be shown: it may have credentials in it.

    It is cut between words: half a credential is one that no pattern knows.
    """
    if not isinstance(text, str):
        return ""
    looked_at = _SEQUENCE.sub("", text[: 4 * most])
    if not looked_at.isprintable():
        looked_at = "".join(letter if letter.isprintable() else " " for letter in looked_at)
    looked_at = looked_at.rstrip()
    if len(text) <= 4 * most and len(looked_at) <= most:
        return looked_at
    return (
        looked_at[: most - 1].rpartition(" ")[0] + "…"
        if " " in looked_at[: most - 1].strip()
        else f"[{len(text)} letters without a space]"
    )
