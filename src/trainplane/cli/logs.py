"""`trainplane logs`: what the steps of a TrainJob print and printed."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from trainplane.cli.connection import Connection
from trainplane.cli.errors import CommandError
from trainplane.cli.options import Containers, Context, JobName, Kubeconfig, Local, Namespace, Verbose
from trainplane.cli.output import Output
from trainplane.cli.since import read_since

if TYPE_CHECKING:
    from trainplane.client.types.jobs import LogLine

COLOURS: Final = ("cyan", "green", "yellow", "magenta", "blue")
"""Of ranks that stand side by side; red is for what is wrong."""

Nodes = Annotated[
    list[int] | None,
    typer.Option("--node", metavar="N", min=0, help="Only of this node; may be repeated.", show_default=False),
]
Steps = Annotated[
    list[str] | None,
    typer.Option(
        "--step",
        metavar="NAME",
        help="Only of this step, such as dataset-initializer or node-1; may be repeated.",
        show_default=False,
    ),
]
Follow = Annotated[bool, typer.Option("-f", "--follow", help="Go on until the TrainJob is over, through restarts.")]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Not older than 30s, 10m, 2h, 1d, or a moment.", show_default=False),
]
Tail = Annotated[
    int | None,
    typer.Option("--tail", metavar="N", min=0, help="Only the last so many lines of each step.", show_default=False),
]
Previous = Annotated[
    bool, typer.Option("-p", "--previous", help="Of each step the run before, where it was started again.")
]
Timestamps = Annotated[bool, typer.Option("--timestamps", help="Each line with the time of its printing.")]


def command(
    job: JobName,
    node: Nodes = None,
    step: Steps = None,
    follow: Follow = False,
    since: Since = None,
    tail: Tail = None,
    previous: Previous = False,
    timestamps: Timestamps = False,
    local: Local = False,
    containers: Containers = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Show what the steps of a TrainJob print.

    All steps, in the order of time, each line with its step in front where there are several. Followed, a line waits
    for steps that may still bring an earlier one, at most 3 s for one that prints and 15 s for one that is being
    connected again; only what comes later than that is out of order. On a hub also of pods that are gone: their logs
    are kept there. Elsewhere a warning on standard error names the nodes whose logs went with their pods.

    Exit code: 0, also if there are none; 2 they cannot be read.
    """
    del verbose
    if previous and follow:
        raise CommandError("--previous reads a run that is over, and --follow waits for lines", "leave one of them out")
    moment = read_since(since, datetime.now(UTC)) if since else None
    steps = [*(f"node-{number}" for number in node or ()), *(step or ())] or None
    shown = Shown(Output(sys.stdout), timestamps)
    work = _read(
        job,
        Connection(namespace, context, kubeconfig, local=local, containers=containers),
        steps,
        shown,
        follow,
        tail,
        moment,
        previous,
    )
    return asyncio.run(work)


class Shown:
    """How lines are printed: with the step in front if there are `several`, each step in its colour."""

    def __init__(self, output: Output, timestamps: bool = False) -> None:
        self._output, self._timestamps = output, timestamps
        self._colours: dict[str, str] = {}
        self.several = True
        self.count = 0

    def line(self, line: LogLine) -> None:
        """Print a line."""
        self.count += 1
        colour = self._colours.setdefault(line.step, COLOURS[len(self._colours) % len(COLOURS)])
        time = f"{line.time:%Y-%m-%dT%H:%M:%S.%fZ} " if self._timestamps and line.time else ""
        head = f"[{line.step}] " if self.several else ""
        self._output.line(head, colour=colour, after=time + _last_state(line.text))


async def _read(
    name: str,
    connection: Connection,
    steps: list[str] | None,
    shown: Shown,
    follow: bool,
    tail: int | None,
    since: datetime | None,
    previous: bool,
) -> int:
    async with connection.client() as client:
        if steps is None:
            found = await client.get_job(name)
            shown.several = max(found.num_nodes, len(found.steps)) > 1
        else:
            shown.several = len(steps) > 1
        stream = client.stream_job_logs(name, steps, follow=follow, tail=tail, since=since, previous=previous)
        async with aclosing(stream) as lines:
            async for line in lines:
                shown.line(line)
                if follow:
                    sys.stdout.flush()
    if previous and not shown.count:
        Output(sys.stderr).line("No step was started again in its pod, and pods of earlier attempts are gone.")
    return 0


def _last_state(text: str) -> str:
    """Return what a terminal would show of a line that was written over and over, as progress bars are."""
    return text.rstrip("\r").rpartition("\r")[2]
