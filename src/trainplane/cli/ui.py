"""`trainplane ui`: the fleet, its jobs and one job as pages in a browser, served on this machine alone."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import typer

from trainplane.cli.connection import Connection
from trainplane.cli.errors import CommandError
from trainplane.cli.options import Context, Kubeconfig, Namespace, Verbose
from trainplane.cli.output import Output

Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="The port on 127.0.0.1; 0: a free one.")]


def command(
    port: Port = 0,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Show the fleet, its jobs and one job as pages in a browser.

    Prints an address on 127.0.0.1 with a token in it, which is the key: whoever has it sees what you may see. Pages are
    read with your own credentials, and change nothing. Nothing is installed in the cluster. Ctrl-C ends it. The browser
    is yours to open: started from here, its command line would show the token to everybody on this machine.

    Exit code: 0 it was ended; 2 the cluster cannot be reached as asked, or the port is taken.
    """
    del verbose
    try:
        asyncio.run(_serve(Connection(namespace, context, kubeconfig), port))
    except KeyboardInterrupt:
        pass
    except OSError as error:
        raise CommandError(f"--port {port}: {error.strerror or error}", "leave it out for a free one") from error
    return 0


async def _serve(connection: Connection, port: int) -> None:
    from trainplane.client.aio import AsyncTrainerClient  # noqa: PLC0415 heavy
    from trainplane.page.server import serving  # noqa: PLC0415 heavy

    async with (
        connection.backend() as backend,
        serving(AsyncTrainerClient(backend=backend), backend.namespace, port) as guard,
    ):
        output = Output(sys.stdout)
        output.line(guard.address)
        output.line(f"TrainJobs of namespace {backend.namespace}; Ctrl-C ends it")
        sys.stdout.flush()
        await asyncio.Event().wait()
