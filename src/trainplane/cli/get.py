"""`trainplane get`: one TrainJob, with all that can be told of it."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trainplane.cli.connection import Connection
from trainplane.cli.explain import show_timeline
from trainplane.cli.objects import FOR_PROGRAMS, show_object
from trainplane.cli.options import Containers, Context, Format, JobName, Kubeconfig, Local, Namespace, Verbose
from trainplane.cli.output import Output
from trainplane.cli.queued import show_answer

if TYPE_CHECKING:
    from trainplane.client.types.descriptions import Description


def command(
    job: JobName,
    output: Format = "table",
    local: Local = False,
    containers: Containers = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Show a TrainJob: state, steps, timeline, events.

    With how far it is, why it waits or failed, its conditions, and when it reached each stage of its life. JSON and
    YAML have the object as the API server has it.

    Exit code: 0 it is well; 1 it has failed; 2 it cannot be read.
    """
    del verbose
    return asyncio.run(
        _get(job, Connection(namespace, context, kubeconfig, local=local, containers=containers), output)
    )


async def _get(name: str, connection: Connection, form: str) -> int:
    printed = Output(sys.stdout)
    async with connection.client() as client:
        if form in FOR_PROGRAMS:
            show_object(await client.get_job_document(name), form, printed)
            return 0
        told, document = await client.describe_job(name), await client.get_job_document(name)
    show(told, document, printed, datetime.now(UTC), wide=form == "wide")
    return 1 if told.job.status == "Failed" else 0


def show(told: Description, document: dict[str, Any], output: Output, now: datetime, *, wide: bool = False) -> None:
    """Print all that can be told of a TrainJob; `wide` leaves no event out."""
    from trainplane.client.display.facts import age, blame, duration, nodes, progress  # noqa: PLC0415 heavy
    from trainplane.client.display.tables import events_table, steps_table  # noqa: PLC0415 heavy
    from trainplane.client.types.descriptions import RECENT_EVENTS  # noqa: PLC0415 heavy
    from trainplane.explain.timeline import spans  # noqa: PLC0415 heavy

    job = told.job
    output.state(job.status, f"{job.name}  ", f"  {duration(age(job, now))}")
    facts = {
        "namespace": job.namespace,
        "runtime": f"{job.runtime.name} ({job.runtime.trainer.framework})",
        "nodes": "{} of {} run".format(*nodes(job)),
        "queue": job.queue or "",
        "cluster": job.cluster or "",
        "progress": progress(job),
        "created": f"{job.creation_timestamp:%Y-%m-%d %H:%M:%S}Z",
        "finished": f"{job.finished:%Y-%m-%d %H:%M:%S}Z" if job.finished else "",
        "why": blame(job.cause) if job.cause else "",
    }
    for label, value in facts.items():
        if value:
            output.item(" ", "", f"{label:<10}", value, indent=0)
    if told.queue:
        output.heading("Queue")
        show_answer(told.queue, output)
    if job.steps:
        output.heading("Steps")
        output.table(steps_table(job.steps))
    _show_conditions(document, output)
    if job.timeline:
        show_timeline(spans(job.timeline, document), output)
    if told.events:
        shown = told.events if wide else told.events[-RECENT_EVENTS:]
        left = f", the last {len(shown)} of {len(told.events)}" if len(shown) < len(told.events) else ""
        output.heading(f"Events{left}")
        output.table(events_table(shown))


def _show_conditions(document: dict[str, Any], output: Output) -> None:
    from trainplane.client.display.tables import Table  # noqa: PLC0415 heavy
    from trainplane.lifecycle.conditions import conditions_of  # noqa: PLC0415 heavy

    rows = [{name: str(one.get(field) or "") for name, field in _CONDITION.items()} for one in conditions_of(document)]
    if rows:
        output.heading("Conditions")
        output.table(Table.of(rows))


_CONDITION = {
    "condition": "type",
    "status": "status",
    "since": "lastTransitionTime",
    "reason": "reason",
    "message": "message",
}
