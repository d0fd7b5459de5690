"""`trainplane watch`: one TrainJob, live, from its queue to its last step."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from trainplane.cli.completing import job_names
from trainplane.cli.connection import Connection
from trainplane.cli.errors import WRONG, CommandError
from trainplane.cli.options import Context, Kubeconfig, Namespace, Verbose
from trainplane.cli.output import Output

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trainplane.cli.live.screen import Screen, View
    from trainplane.client.aio import AsyncTrainerClient
    from trainplane.client.types.jobs import TrainJob
    from trainplane.client.types.observation import Observation

NOTE = "Ctrl-C leaves; the job goes on"
OFFERED = 20
"""TrainJobs to choose from: the newest."""
LEFT_ROWS = 24
"""Rows of what stays on the terminal when the job is over."""

Job = Annotated[
    str | None,
    typer.Argument(
        metavar="[JOB]",
        help="The TrainJob (default: the one that is not over; of several you are asked).",
        show_default=False,
        autocompletion=job_names,
    ),
]
Plain = Annotated[bool, typer.Option("--plain", help="A line for each change, as where there is no terminal.")]


def command(
    job: Job = None,
    plain: Plain = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Show a TrainJob live until it is over.

    What it waits for or what went wrong, progress and the time left, the stages behind it, its nodes and their
    restarts, a chart of each metric that it reports, and the last line of each step: those in trouble first, as many
    as fit. Where there is no terminal, a line for each change. Ctrl-C leaves, and the job goes on.

    Exit code: 0 it is Complete; 1 it failed or was deleted; 2 it cannot be read; 130 you left.
    """
    del verbose
    connection = Connection(namespace, context, kubeconfig)
    name = job or choose(asyncio.run(_unfinished(connection)))
    try:
        return asyncio.run(_watch(connection, name, plain=plain))
    except KeyboardInterrupt:
        Output(sys.stderr).line(f"TrainJob {name} goes on. Come back with: trainplane watch {name}")
        raise


def choose(jobs: Sequence[TrainJob], ask: Callable[[str], str] | None = None) -> str:
    """Return the name of the one TrainJob, or of that which the person at the terminal chooses; `ask` asks.

    Raises:
        CommandError: there is none, or there are several and nobody to ask.
    """
    from trainplane.client.display.text import say_job  # noqa: PLC0415 heavy

    if not jobs:
        raise CommandError("no TrainJob here is running or waiting", "name one, or another namespace with -n")
    if len(jobs) == 1:
        return jobs[0].name
    if ask is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        names = ", ".join(job.name for job in jobs[:OFFERED]) + (", ..." if len(jobs) > OFFERED else "")
        raise CommandError(f"{len(jobs)} TrainJobs are not over: {names}", "name one of them")
    offered = {str(number): job for number, job in enumerate(jobs[-OFFERED:], 1)}
    output, last = Output(sys.stdout), len(offered)
    for number, job in offered.items():
        output.line(f"{number:>3}  {say_job(job)}")
    answer = (ask or input)(f"Which? [1-{last}, Enter: {last}] ").strip() or str(last)
    if answer not in offered:
        raise CommandError(f"there is no number {answer[:20]}", f"choose one from 1 to {last}, or name a TrainJob")
    return offered[answer].name


async def _unfinished(connection: Connection) -> list[TrainJob]:
    from trainplane.client.types.jobs import FINISHED  # noqa: PLC0415 heavy

    async with connection.client() as client:
        return [job for job in await client.list_jobs() if job.status not in FINISHED]


async def _watch(connection: Connection, name: str, *, plain: bool) -> int:
    from trainplane.cli.live.screen import Screen  # noqa: PLC0415 Rich is slow to import

    screen = Screen()
    async with connection.client() as client:
        if plain or not screen.is_live:
            return await print_changes(client, name, Output(sys.stdout))
        return await show_live(client, name, screen)


async def show_live(client: AsyncTrainerClient, name: str, screen: Screen) -> int:
    """Show a TrainJob on a screen until it is over; leave its last view there and return the exit code."""
    from trainplane.cli.live.job import job_view  # noqa: PLC0415 Rich is slow to import
    from trainplane.cli.live.screen import redraw  # noqa: PLC0415 as above

    def view(seen: Observation, note: str = "") -> View:
        return lambda *where: job_view(seen, *where, note=note)

    with screen.open():
        seen = await redraw(client.observe_job(name), lambda seen: screen.show(view(seen, NOTE)))
    if seen is None:
        return WRONG
    screen.leave(view(seen), LEFT_ROWS)
    return code_of(seen)


async def print_changes(client: AsyncTrainerClient, name: str, output: Output) -> int:
    """Print a line for each change of a TrainJob until it is over; return the exit code."""
    import time  # noqa: PLC0415 rare
    from datetime import UTC, datetime  # noqa: PLC0415 rare

    from trainplane.cli.live.changes import Changes  # noqa: PLC0415 heavy

    changes, seen = Changes(time.monotonic), None
    async for seen in client.observe_job(name):
        for line in changes.news(seen):
            output.line(f"{datetime.now(UTC):%H:%M:%SZ} {' '.join(line.split())}")
        sys.stdout.flush()
    return code_of(seen) if seen is not None else WRONG


def code_of(seen: Observation) -> int:
    """Return the exit code that tells how a TrainJob ended."""
    from trainplane.client.types.jobs import COMPLETE  # noqa: PLC0415 heavy

    return 0 if seen.job.status == COMPLETE and not seen.is_deleted else WRONG
