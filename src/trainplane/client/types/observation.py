"""All that is seen of a TrainJob at one moment, by somebody who keeps looking."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from trainplane.client.types.descriptions import QueueAnswer
    from trainplane.client.types.jobs import Milestone, TrainJob
    from trainplane.explain.explanation import Explanation


@dataclass(frozen=True)
class Observation:
    """What `observe_job` yields."""

    job: TrainJob
    metrics: Mapping[str, tuple[tuple[datetime, float], ...]] = field(default_factory=dict)
    """Points of each metric in the order of time: those that are kept with the TrainJob, then those seen since."""
    lines: Mapping[str, str] = field(default_factory=dict)
    """The last line of steps, by step: of all where they are few, of those in trouble and the first ones else."""
    timeline: tuple[Milestone, ...] = ()
    queue: QueueAnswer | None = None
    """Of a job that Kueue holds, where the hub's API can be asked."""
    explanation: Explanation | None = None
    """What is the matter, once it failed, or nothing happened for a while and something is."""
    is_deleted: bool = False
    """It was deleted; the rest is as last seen."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Parts that could not be read, and why."""
