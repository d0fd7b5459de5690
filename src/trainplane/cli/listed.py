"""`trainplane list`: the TrainJobs of a namespace, or of all."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from trainplane.cli.connection import Connection
from trainplane.cli.errors import CommandError
from trainplane.cli.objects import FOR_PROGRAMS, show_objects
from trainplane.cli.options import (
    AllNamespaces,
    Containers,
    Context,
    Format,
    Kubeconfig,
    Labels,
    Local,
    Namespace,
    Verbose,
)
from trainplane.cli.output import Output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.client.types.jobs import TrainJob

Runtime = Annotated[
    str | None, typer.Option("--runtime", metavar="NAME", help="Only those that run on it.", show_default=False)
]


def command(
    labels: Labels = None,
    runtime: Runtime = None,
    output: Format = "table",
    all_namespaces: AllNamespaces = False,
    local: Local = False,
    containers: Containers = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """List TrainJobs with their states.

    Oldest first, with the nodes that run, how far each is, its queue and cluster, and why it waits or failed. Two
    requests, however many there are.

    Exit code: 0, also if there are none; 2 they cannot be read.
    """
    del verbose
    connection = Connection(namespace, context, kubeconfig, local=local, containers=containers)
    if local or containers:
        if labels or all_namespaces:
            raise CommandError("jobs of this machine have no namespaces, and are not chosen by labels")
        return asyncio.run(_list_here(connection, runtime, output))
    return asyncio.run(_list(connection, runtime, labels, output, everywhere=all_namespaces))


async def _list_here(connection: Connection, runtime: str | None, form: str) -> int:
    """List the jobs of this machine."""
    printed = Output(sys.stdout)
    async with connection.client() as client:
        jobs = await client.list_jobs(runtime)
        if form in FOR_PROGRAMS:
            show_objects([await client.get_job_document(job.name) for job in jobs], form, printed)
            return 0
    _show(jobs, printed, " on this machine", everywhere=False, wide=form == "wide")
    return 0


async def _list(connection: Connection, runtime: str | None, labels: str | None, form: str, *, everywhere: bool) -> int:
    printed = Output(sys.stdout)
    async with connection.backend() as backend:
        if form in FOR_PROGRAMS:
            show_objects(await backend.list_documents(runtime, labels=labels, everywhere=everywhere), form, printed)
            return 0
        jobs = await backend.list_jobs(runtime, labels=labels, everywhere=everywhere)
        place = "" if everywhere else f" in namespace {backend.namespace}"
    _show(jobs, printed, place, everywhere=everywhere, wide=form == "wide")
    return 0


def _show(jobs: Sequence[TrainJob], printed: Output, place: str, *, everywhere: bool, wide: bool) -> None:
    from trainplane.client.display.tables import jobs_table  # noqa: PLC0415 heavy

    if jobs:
        printed.table(jobs_table(jobs, datetime.now(UTC), namespaces=everywhere, wide=wide))
    else:
        Output(sys.stderr).line(f"There are no such TrainJobs{place}.")
