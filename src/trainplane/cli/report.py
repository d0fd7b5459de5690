"""`trainplane report`: the page of one TrainJob as one HTML file, for a mail or a ticket."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainplane.cli.completing import job_names
from trainplane.cli.connection import Connection
from trainplane.cli.errors import CommandError
from trainplane.cli.options import Context, Kubeconfig, Namespace, Verbose
from trainplane.cli.trainjob import read_file

if TYPE_CHECKING:
    from trainplane.page.look import Look

Job = Annotated[
    str | None, typer.Argument(metavar="[JOB]", help="The TrainJob.", show_default=False, autocompletion=job_names)
]
Target = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="The file (default: JOB.html here); - for stdout."),
]
Bundle = Annotated[
    str | None,
    typer.Option("--bundle", metavar="FILE", help="Report what is in a bundle; no cluster is asked."),
]


def command(
    job: Job = None,
    output: Target = None,
    bundle: Bundle = None,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Write the page of a TrainJob as one HTML file.

    State, cause and what to do, timeline, metrics, nodes, the last lines and events: the page that `trainplane ui`
    shows, without script and without the address of anything else. What `trainplane bundle` leaves out is left out
    here too: environments, commands, arguments, annotations, Secrets, and what looks like a credential.

    Exit code: 0 the file is written; 2 the TrainJob or the bundle cannot be read, or the file cannot be written.
    """
    del verbose
    if (job is None) == (bundle is None):
        raise CommandError("one of JOB and --bundle is needed, and not both", "see: trainplane report --help")
    from trainplane.page.shell import report  # noqa: PLC0415 heavy

    connection = Connection(namespace, context, kubeconfig)
    text = report(_read(bundle) if bundle else asyncio.run(_ask(connection, job or "")))
    if output == "-":
        sys.stdout.write(text)
        return 0
    target = output or f"{Path(bundle).stem if bundle else job}.html"
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write {target}: {error.strerror or error}", "give another with -o") from error
    return 0


async def _ask(connection: Connection, name: str) -> Look:
    from trainplane.page.asking import ask  # noqa: PLC0415 heavy

    async with connection.client() as client:
        return await ask(client, name, _now, to_hand_on=True)


def _read(bundle: str) -> Look:
    from trainplane.page.look import handed_on, look_at  # noqa: PLC0415 heavy

    return look_at(handed_on(read_file(bundle)), _now())


def _now() -> datetime:
    return datetime.now(UTC)
