"""How fast histories are run, by however many processes: over the time in which at least one of them was at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Span(NamedTuple):
    """From when to when a process ran histories, on the clock that all processes of a machine share."""

    began: float
    ended: float


def seconds_busy(spans: Iterable[Span]) -> float:
    """Return the seconds that are within any of the spans; what several of them cover counts once."""
    busy, until = 0.0, float("-inf")
    for span in sorted(spans):
        busy += max(0.0, span.ended - max(span.began, until))
        until = max(until, span.ended)
    return busy
