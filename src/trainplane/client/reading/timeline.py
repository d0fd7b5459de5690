"""The timeline of a TrainJob, as `explain` finds it, in the SDK's types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.client.types.jobs import Milestone
from trainplane.explain.timeline import timeline_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.client.reading.history import Points
    from trainplane.explain.facts import Facts


def read_timeline(facts: Facts, history: Mapping[str, Points] | None = None) -> tuple[Milestone, ...]:
    """Return when a TrainJob reached each stage; `history` are the kept points of its metrics, the first first."""
    begun = min((points[0][0] for points in (history or {}).values() if points), default=None)
    return tuple(Milestone(one.stage, one.time, one.reason, one.number) for one in timeline_of(facts, begun))
