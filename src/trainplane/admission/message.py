"""What a person reads when an object is refused, or warned of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.render.findings import MOST_FINDINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.render.findings import Verdict

LONGEST_LINE: Final = 1024
"""Characters of one reason or warning: a name that somebody wrote may have a million."""


def describe(verdict: Verdict, kind: str) -> str:
    """Return the message for a refused object: one line for each thing to correct, the first few of many.

    kubectl puts the webhook's name before it, so it begins with what was refused.
    """
    lines = [shortened(str(finding)) for finding in verdict.errors[:MOST_FINDINGS]]
    if len(lines) == 1:
        return f"this {kind} is refused: {lines[0]}"
    more = ", and perhaps more" if len(lines) == MOST_FINDINGS else ""
    return "\n- ".join([f"this {kind} is refused for {len(lines)} reasons{more}:", *lines])


def shown(warnings: Sequence[str]) -> tuple[str, ...]:
    """Return warnings as they are sent: the first few, none at length. The API server cuts them further."""
    return tuple(map(shortened, warnings[:MOST_FINDINGS]))


def shortened(text: str) -> str:
    """Return a text of at most one line's length, its end left out where it has more."""
    return text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 3]}..."
