"""All that can be told of a TrainJob, in one piece."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trainplane.client.types.shown import Shown

if TYPE_CHECKING:
    from trainplane.client.types.jobs import Event, TrainJob

RECENT_EVENTS = 15
"""Events that the text of a description shows: the last ones."""


@dataclass(frozen=True)
class Advice:
    """Something that stands in the way, or would help."""

    what: str
    do: str = ""
    """What to do about it; a command where one does it."""
    now: bool = False
    """Whether the job would start at once."""


@dataclass(frozen=True)
class QueueAnswer:
    """Why a TrainJob is queued, and what would let it start."""

    summary: str
    position: int | None = None
    """Its place in line, from 1."""
    pending: int | None = None
    """How many are in line."""
    causes: tuple[Advice, ...] = ()
    suggestions: tuple[Advice, ...] = ()


@dataclass(frozen=True)
class Description(Shown):
    """A TrainJob, what happened to it, and why it waits. `print` it."""

    job: TrainJob
    events: list[Event] = field(default_factory=list)
    """In the order of time."""
    queue: QueueAnswer | None = None
    """Of a job that Kueue holds, where the hub's API can be asked."""

    def __str__(self) -> str:
        job = self.job
        lines = [f"TrainJob {job.name}: {job.status}" + (f" on {job.cluster}" if job.cluster else "")]
        facts = {
            "runtime": f"{job.runtime.name} ({job.runtime.trainer.framework})",
            "nodes": str(job.num_nodes),
            "namespace": job.namespace,
            "queue": job.queue or "",
            "created": job.creation_timestamp.isoformat(),
            "finished": job.finished.isoformat() if job.finished else "",
        }
        lines += [f"  {name + ':':<11}{value}" for name, value in facts.items() if value]
        if job.cause:
            lines += ["why:", *(f"  {line}" for line in str(job.cause).splitlines())]
        if self.queue:
            lines += ["queue:", f"  {self.queue.summary}"]
            lines += [
                f"  - {'now: ' if advice.now else ''}{advice.what} {advice.do}" for advice in self.queue.suggestions
            ]
        if job.steps:
            lines.append("steps:")
            lines += [
                f"  {step.name:<22}{step.status or 'Unknown':<11}{step.reason or '':<18}{step.node or ''}".rstrip()
                for step in job.steps
            ]
        if self.events:
            lines.append("events:")
            lines += [
                f"  {event.event_time:%H:%M:%S} {event.reason:<22} {event.involved_object_kind} "
                f"{event.involved_object_name}: {event.message}"
                for event in self.events[-RECENT_EVENTS:]
            ]
        return "\n".join(lines)
