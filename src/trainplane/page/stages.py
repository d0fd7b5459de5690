"""When a TrainJob reached each stage of its life, and which of them took long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.client.display.facts import duration
from trainplane.page.markup import Html, table, tag

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from trainplane.api.trainjob import Milestone


def stages(reached: Sequence[tuple[Milestone, timedelta]]) -> Html:
    """Return each stage with its time, how long it took, and a bar by which the longest is found."""
    if not reached:
        return tag("p", "Nothing has happened yet.", class_="faint")
    longest = max(took.total_seconds() for _, took in reached) or 1.0
    rows = (
        (
            f"{one.stage} {one.number}" if one.number else one.stage,
            f"{one.time:%Y-%m-%d %H:%M:%S}Z",
            duration(took.total_seconds()),
            _bar(took.total_seconds() / longest),
            one.reason,
        )
        for one, took in reached
    )
    return table("Stages, each with the time since the one before", ("stage", "reached", "took", "share", "why"), rows)


def _bar(share: float) -> Html:
    """Return a bar for the eye alone: the column before it says the same."""
    filled = tag("rect", width=f"{max(1.0, 100 * share):.1f}", height="8")
    return tag("svg", filled, viewBox="0 0 100 8", preserveAspectRatio="none", class_="bar", aria_hidden="true")
