"""All that a page shows of one TrainJob, worked out of its facts once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from trainplane.client.reading.events import read_events
from trainplane.client.reading.jobs import read_job
from trainplane.client.types.jobs import LogLine
from trainplane.explain.bundle import read_bundle, write_bundle
from trainplane.explain.explain import explain
from trainplane.explain.timeline import spans, timeline_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from trainplane.api.trainjob import Milestone
    from trainplane.client.types.jobs import Event, TrainJob
    from trainplane.explain.explanation import Explanation
    from trainplane.explain.facts import Facts
    from trainplane.page.origins import PodOrigins

MOST_LINES: Final = 200
"""Log lines of a page: the last."""
MOST_EVENTS: Final = 200


@dataclass(frozen=True)
class Look:
    """One TrainJob at one time."""

    job: TrainJob
    told: Explanation
    stages: Sequence[tuple[Milestone, timedelta]]
    events: Sequence[Event]
    """The last, in the order of time."""
    earlier_events: int
    """How many are not among them."""
    lines: Sequence[LogLine]
    """The last of all steps, in the order of time."""
    unread: Sequence[str]
    """What could not be read, and why."""
    origins: Sequence[PodOrigins] = ()
    now: datetime = field(kw_only=True)


def look_at(
    facts: Facts,
    now: datetime,
    *,
    known: TrainJob | None = None,
    origins: Sequence[PodOrigins] = (),
    unread: Sequence[str] = (),
) -> Look:
    """Return what is shown of a TrainJob.

    Args:
        facts: What is known of it.
        now: When.
        known: The TrainJob as `get_job` has it: its runtime and the points of its metrics are not among the facts.
        origins: Where its pods' fields come from.
        unread: What else could not be read, and why.
    """
    runtime = known.runtime if known else None
    job = read_job(facts.job, facts.pods, runtime=runtime, view=facts.view, events=facts.events, logs=facts.logs)
    job.metrics_history = known.metrics_history if known else {}
    events = read_events(facts.events)
    return Look(
        job,
        explain(facts, now),
        spans(timeline_of(facts), facts.job),
        events[-MOST_EVENTS:],
        max(0, len(events) - MOST_EVENTS),
        _last_lines(facts),
        [*facts.unread, *unread],
        origins,
        now=now,
    )


def handed_on(facts: Facts) -> Facts:
    """Return of facts what may be given to somebody else: what a bundle of them would have, and nothing more."""
    return read_bundle(write_bundle(facts))


def _last_lines(facts: Facts) -> list[LogLine]:
    """Return the last lines of all steps, merged by time; a line without one stays with the line before it."""
    merged: list[tuple[float, int, LogLine]] = []
    for step, lines in facts.logs.items():
        when = 0.0
        for line in lines[-MOST_LINES:]:
            when = line.time.timestamp() if line.time else when
            merged.append((when, len(merged), LogLine(step, line.text, line.time)))
    return [line for _, _, line in sorted(merged, key=lambda one: one[:2])][-MOST_LINES:]
