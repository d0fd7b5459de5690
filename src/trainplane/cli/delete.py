"""`trainplane delete`: TrainJobs with all that they are made of."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from trainplane.cli.completing import job_names
from trainplane.cli.connection import Connection
from trainplane.cli.each import each
from trainplane.cli.errors import CommandError
from trainplane.cli.options import Containers, Context, Kubeconfig, Local, Namespace, Verbose
from trainplane.cli.output import Output

if TYPE_CHECKING:
    from typing import TextIO

Jobs = Annotated[
    list[str] | None,
    typer.Argument(metavar="[JOB]...", help="The TrainJobs.", show_default=False, autocompletion=job_names),
]
All = Annotated[bool, typer.Option("--all", help="All TrainJobs of the namespace.")]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")]


def command(
    jobs: Jobs = None,
    every: All = False,
    yes: Yes = False,
    local: Local = False,
    containers: Containers = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Delete TrainJobs with their pods and logs.

    What was sent to an output stays there. With --all, asks first; where there is nobody to ask, --yes is needed.

    Exit code: 0 they are deleted; 1 you said no; 2 one could not be deleted.
    """
    del verbose
    if bool(jobs) == every:
        raise CommandError("JOB or --all is needed, and not both", "see: trainplane delete --help")
    connection = Connection(namespace, context, kubeconfig, local=local, containers=containers)
    return asyncio.run(_work(jobs or [], connection, yes=yes))


async def _work(jobs: list[str], connection: Connection, *, yes: bool) -> int:
    async with connection.client() as client:
        if not jobs:
            jobs = [job.name for job in await client.list_jobs()]
            if not jobs:
                Output(sys.stdout).line("there are no TrainJobs")
                return 0
            if not (yes or confirm(jobs, sys.stdin, sys.stderr)):
                return 1
        return await each(jobs, client.delete_job, lambda job: f"TrainJob {job} is deleted")


def confirm(jobs: list[str], typed: TextIO, shown: TextIO) -> bool:
    """Ask whether TrainJobs are to be deleted; anything but a yes is a no.

    Raises:
        CommandError: there is nobody to ask.
    """
    if not (typed.isatty() and shown.isatty()):
        raise CommandError(f"--all would delete {len(jobs)} TrainJobs, and there is nobody to ask", "give --yes")
    Output(shown).line(f"{', '.join(jobs[:10])}{f' and {len(jobs) - 10} more' if len(jobs) > 10 else ''}")
    shown.write(f"Delete {'this TrainJob' if len(jobs) == 1 else f'these {len(jobs)} TrainJobs'}? [y/N] ")
    shown.flush()
    return typed.readline().strip().lower() in {"y", "yes"}
