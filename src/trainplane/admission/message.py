"""What a person reads when an object is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainplane.render.findings import Verdict


def describe(verdict: Verdict, kind: str) -> str:
    """Return the message for a refused object: one line for each thing to correct.

    kubectl puts the webhook's name before it, so it begins with what was refused.
    """
    lines = [str(finding) for finding in verdict.errors]
    if len(lines) == 1:
        return f"this {kind} is refused: {lines[0]}"
    return "\n- ".join([f"this {kind} is refused for {len(lines)} reasons:", *lines])
