"""Makes a history that fails as small as it can be: fewer actions, then fewer replicas, and still the same rule broken.

Delta debugging: drop a half, a quarter, and so on down to single actions, and keep what still fails. What is drawn
while a history runs follows from its seed alone, so a shorter one may go another way; then it is not kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.machine import run

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.history import History


def shrink(history: History, rule: str, breaks: Callable[[History], set[str]] | None = None) -> History:
    """Return the smallest history found that breaks a rule which this one breaks."""
    breaks = breaks or rules_broken
    size = max(1, len(history.actions) // 2)
    while size:
        smaller = _drop(history, size, rule, breaks)
        if smaller is None:
            size //= 2
        else:
            history = smaller
            size = min(size, max(1, len(history.actions) // 2))
        if not history.actions:
            break
    for replicas in range(1, history.replicas):
        fewer = history._replace(replicas=replicas)
        if rule in breaks(fewer):
            return fewer
    return history


def rules_broken(history: History) -> set[str]:
    """Return the rules that a history breaks."""
    return {one.rule for one in run(history).violations}


def _drop(history: History, size: int, rule: str, breaks: Callable[[History], set[str]]) -> History | None:
    for start in range(0, len(history.actions), size):
        rest = history._replace(actions=history.actions[:start] + history.actions[start + size :])
        if rule in breaks(rest):
            return rest
    return None
