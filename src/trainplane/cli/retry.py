"""`trainplane retry`: once more what is over."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import typer

from trainplane.cli.connection import Connection
from trainplane.cli.options import Containers, Context, JobName, Kubeconfig, Local, Namespace, Verbose
from trainplane.cli.output import Output

NewName = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="What the new one is called (default: JOB-2).", show_default=False),
]
Replace = Annotated[
    bool, typer.Option("--replace", help="Delete the TrainJob with its logs, and give the new one its name.")
]


def command(
    job: JobName,
    name: NewName = None,
    replace: Replace = False,
    local: Local = False,
    containers: Containers = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Train again what failed or is complete, as it was submitted.

    A TrainJob that is over never runs again, so this submits another one with the same spec, on the runtime as it is
    now: JOB-2, then JOB-3, beside the one that is over; or, with --replace, in its place. It goes on from the last
    checkpoint if its training finds one. Prints the name of the new TrainJob.

    Exit code: 0 it is submitted; 2 it is not over, or is not taken again; then nothing was deleted.
    """
    del verbose
    connection = Connection(namespace, context, kubeconfig, local=local, containers=containers)
    made = asyncio.run(_work(job, name, connection, replace=replace))
    said = f"TrainJob {job} is deleted and submitted again" if made == job else f"TrainJob {made} is {job} once more"
    Output(sys.stderr).line(f"{said}. See it: trainplane logs --follow {made}{connection.words}")
    Output(sys.stdout).line(made)
    return 0


async def _work(job: str, name: str | None, connection: Connection, *, replace: bool) -> str:
    async with connection.client() as client:
        return await client.retry_job(job, name, replace=replace)
