"""`trainplane queue`: why a TrainJob waits and what would let it start, or what waits."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from trainplane.cli.completing import job_names
from trainplane.cli.connection import Connection
from trainplane.cli.errors import CommandError
from trainplane.cli.options import AllNamespaces, Context, Kubeconfig, Namespace, TextOrJson, Verbose
from trainplane.cli.output import Output

if TYPE_CHECKING:
    from trainplane.client.types.descriptions import Advice, QueueAnswer

Job = Annotated[
    str | None,
    typer.Argument(
        metavar="[JOB]", help="The TrainJob; without one, all that wait.", show_default=False, autocompletion=job_names
    ),
]


def command(
    job: Job = None,
    output: TextOrJson = "text",
    all_namespaces: AllNamespaces = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Say why a TrainJob waits, and what would start it.

    Its place in line, who holds the quota, and what to do: as the hub's queue API answers or, where there is none, as
    far as the TrainJob itself tells. Without a TrainJob: all that wait.

    Exit code: 0 told, also if nothing waits; 2 it cannot be read.
    """
    del verbose
    connection = Connection(namespace, context, kubeconfig)
    if job is None:
        return asyncio.run(_list(connection, output, everywhere=all_namespaces))
    if all_namespaces:
        raise CommandError("-A is for all that wait, and JOB is one", "leave one of them out")
    return asyncio.run(_tell(job, connection, output))


async def _tell(name: str, connection: Connection, form: str) -> int:
    from trainplane.client.types.jobs import SUSPENDED  # noqa: PLC0415 heavy

    async with connection.client() as client:
        found, answer = await client.get_job(name), await client.explain_queue(name)
    printed = Output(sys.stdout)
    if form == "json":
        told = dataclasses.asdict(answer) if answer else None
        printed.json({"job": name, "status": found.status, "queue": found.queue, "answer": told})
    elif found.status != SUSPENDED:
        printed.state(found.status, f"TrainJob {name} waits in no queue: it is ", "")
    elif answer:
        show_answer(answer, printed)
    else:
        why = found.cause.message if found.cause else "nothing says why"
        printed.item("·", "yellow", f"{found.queue or 'no queue'}: ", why, indent=0)
    return 0


async def _list(connection: Connection, form: str, *, everywhere: bool) -> int:
    from trainplane.client.display.tables import jobs_table  # noqa: PLC0415 heavy
    from trainplane.client.types.jobs import SUSPENDED  # noqa: PLC0415 heavy

    async with connection.backend() as backend:
        waiting = [one for one in await backend.list_jobs(everywhere=everywhere) if one.status == SUSPENDED]
    if form == "json":
        Output(sys.stdout).json(
            [
                {
                    "namespace": one.namespace,
                    "job": one.name,
                    "queue": one.queue,
                    "nodes": one.num_nodes,
                    "created": one.creation_timestamp.isoformat().replace("+00:00", "Z"),
                    "why": one.cause.message if one.cause else "",
                }
                for one in waiting
            ]
        )
    elif waiting:
        Output(sys.stdout).table(jobs_table(waiting, datetime.now(UTC), namespaces=everywhere))
    else:
        Output(sys.stderr).line("Nothing waits.")
    return 0


def show_answer(answer: QueueAnswer, output: Output) -> None:
    """Print why a TrainJob is queued: its place in line, what stands in the way, what would help."""
    of_all = f" of {answer.pending}" if answer.pending is not None else ""
    place = f" (number {answer.position}{of_all} in line)" if answer.position is not None else ""
    output.item("·", "yellow", "", f"{answer.summary}{place}", indent=0)
    for one in answer.causes:
        _show_advice(one, "✗", "red", output)
    for one in answer.suggestions:
        _show_advice(one, "→", "cyan", output)


def _show_advice(advice: Advice, mark: str, colour: str, output: Output) -> None:
    output.item(mark, colour, "starts it now: " if advice.now else "", advice.what, indent=2)
    if advice.do:
        output.item(" ", "", "", advice.do, indent=4)
