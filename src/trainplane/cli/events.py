"""`trainplane events`: what happened to a TrainJob and to what it is made of."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainplane.cli.connection import Connection
from trainplane.cli.errors import CommandError
from trainplane.cli.options import Containers, Context, Format, JobName, Kubeconfig, Local, Namespace, Verbose
from trainplane.cli.output import Output

if TYPE_CHECKING:
    from trainplane.client.types.jobs import Event

Warnings = Annotated[bool, typer.Option("--warnings", help="Only those that warn.")]


def command(
    job: JobName,
    warnings: Warnings = False,
    output: Format = "table",
    local: Local = False,
    containers: Containers = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Show what happened to a TrainJob and its parts.

    In the order of time: of the TrainJob, its JobSet, Jobs and pods and, on a hub, of its worker cluster too.

    Exit code: 0, also if there are none; 2 they cannot be read.
    """
    del verbose
    if output == "name":
        raise CommandError("--output name: events have no names to use", "choose table, json or yaml")

    async def ask() -> list[Event]:
        async with Connection(namespace, context, kubeconfig, local=local, containers=containers).client() as client:
            return await client.get_job_events(job)

    found = [one for one in asyncio.run(ask()) if one.type == "Warning" or not warnings]
    printed = Output(sys.stdout)
    if output == "json":
        printed.json([_tree(one) for one in found])
    elif output == "yaml":
        printed.yaml([_tree(one) for one in found])
    elif found:
        from trainplane.client.display.tables import events_table  # noqa: PLC0415 heavy

        printed.table(events_table(found))
    else:
        Output(sys.stderr).line(f"No such events of TrainJob {job} are kept.")
    return 0


def _tree(event: Event) -> dict[str, Any]:
    """Return an event for programs, its times as Kubernetes writes them."""
    return {
        name: value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else value
        for name, value in dataclasses.asdict(event).items()
    }
