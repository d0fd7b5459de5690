"""The rows that HTML and text share. A column that would be empty in every row is left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainplane.client.display.facts import age, blame, devices, duration, moment, nodes, percent, printable, trouble
from trainplane.client.types.jobs import COMPLETE
from trainplane.client.types.runtimes import RuntimeKind, TrainerType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from trainplane.client.types.jobs import Event, Step, TrainJob
    from trainplane.client.types.runtimes import Runtime

STATUS, TYPE = "status", "type"
COLOURED = frozenset({STATUS, TYPE})
_SCOPES = {RuntimeKind.CLUSTER_TRAINING_RUNTIME: "cluster", RuntimeKind.TRAINING_RUNTIME: "namespace"}
"""Columns whose words have colours."""


@dataclass(frozen=True)
class Table:
    """Cells of text under headers; the last column may be long."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, rows: Iterable[dict[str, str]]) -> Table:
        """Make a table of rows by header, all with the same headers; each cell becomes one line."""
        listed = list(rows)
        used = [header for header in (listed[0] if listed else ()) if any(row[header] for row in listed)]
        return cls(tuple(used), tuple(tuple(_one_line(row[header]) for header in used) for row in listed))


def jobs_table(jobs: Sequence[TrainJob], now: datetime, *, namespaces: bool = False, wide: bool = False) -> Table:
    """Return a row for each TrainJob; on demand with its namespace, and with more than fits most terminals."""
    return Table.of(
        {
            "namespace": job.namespace if namespaces else "",
            "name": job.name,
            STATUS: job.status,
            "runtime": job.runtime.name,
            "nodes": "{}/{}".format(*nodes(job)),
            "done": "" if percent(job) is None or job.status == COMPLETE else f"{percent(job)} %",
            "age": duration((now - job.creation_timestamp).total_seconds()),
            "took": duration(age(job, now)) if job.finished else "",
            "queue": job.queue or "",
            "cluster": job.cluster or "",
            "created": f"{job.creation_timestamp:%Y-%m-%dT%H:%M:%SZ}" if wide else "",
            "machines": ",".join(sorted({step.node for step in job.steps if step.node})) if wide else "",
            "why": blame(job.cause) if job.cause else "",
        }
        for job in jobs
    )


def steps_table(steps: Sequence[Step]) -> Table:
    """Return a row for each step."""
    return Table.of(
        {
            "step": step.name,
            STATUS: step.status or "Unknown",
            "devices": devices(step.device, step.device_count),
            "machine": step.node or "",
            "cluster": step.cluster or "",
            "restarts": str(step.restarts) if step.restarts else "",
            "why": trouble(step),
        }
        for step in steps
    )


def runtimes_table(runtimes: Sequence[Runtime], *, wide: bool = False) -> Table:
    """Return a row for each runtime; `wide`: with its image."""
    return Table.of(
        {
            "name": runtime.name,
            "framework": runtime.trainer.framework,
            "runs": "its own trainer" if runtime.trainer.trainer_type is TrainerType.BUILTIN_TRAINER else "your code",
            "nodes": str(runtime.trainer.num_nodes),
            "devices": devices(runtime.trainer.device, runtime.trainer.device_count),
            "model": runtime.pretrained_model or "",
            "scope": _SCOPES.get(runtime.kind, ""),
            "image": runtime.trainer.image if wide else "",
            "note": "deprecated: choose another" if runtime.deprecated else "",
        }
        for runtime in runtimes
    )


def events_table(events: Sequence[Event]) -> Table:
    """Return a row for each event."""
    several_days = len({moment(event).date() for event in events}) > 1
    form = "%Y-%m-%d %H:%M:%S" if several_days else "%H:%M:%S"
    return Table.of(
        {
            "time": f"{moment(event):{form}}",
            TYPE: "Warning" if event.type == "Warning" else "",
            "reason": event.reason,
            "object": f"{event.involved_object_kind} {event.involved_object_name}",
            "cluster": event.cluster or "",
            "times": str(event.count) if event.count > 1 else "",
            "message": event.message,
        }
        for event in events
    )


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())
