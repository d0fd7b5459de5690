"""`trainplane cp`: what a TrainJob trained, brought here."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import typer

from trainplane.cli.connection import Connection
from trainplane.cli.options import Context, Kubeconfig, Namespace, Verbose
from trainplane.cli.output import Output

Source = Annotated[
    str, typer.Argument(metavar="JOB[:PATH]", help="The TrainJob, and what of its output.", show_default=False)
]
Folder = Annotated[str, typer.Argument(metavar="FOLDER", help="Where to; made if it is not there.")]


def command(
    source: Source,
    folder: Folder = ".",
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Bring the output of a TrainJob to this machine.

    The store is asked directly, with the credentials of your environment, and what comes is compared with what was
    sent. What is there already is not fetched again, and nothing is written outside the folder. PATH is a file or a
    folder of the output. Needs trainplane[initializers]. A job of --local or --containers wrote its files on this
    machine already.

    Exit code: 0 all is here as it was sent; 2 there is no output, it cannot be fetched, or is not what was sent.
    """
    del verbose
    job, _, path = source.partition(":")
    place = asyncio.run(_work(job, path, folder, Connection(namespace, context, kubeconfig)))
    Output(sys.stdout).line(place)
    return 0


async def _work(job: str, path: str, folder: str, connection: Connection) -> str:
    async with connection.client() as client:
        return str(await client.download_output(job, folder, path=path))
