"""`trainplane version`: what is installed here and the API that it speaks; on demand also what the cluster has."""

from __future__ import annotations

import asyncio
import platform
import sys
from typing import Annotated, Any

import typer

from trainplane.cli.connection import Connection
from trainplane.cli.options import Context, Kubeconfig, TextOrJson, Verbose
from trainplane.cli.output import Output

Server = Annotated[bool, typer.Option("--server", help="Also ask the cluster what it has.")]


def command(
    server: Server = False,
    output: TextOrJson = "text",
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Show the version of trainplane and of its API.

    No cluster is asked but with --server: then also its Kubernetes, and the versions of the trainer's and of the hub
    view's API that it serves.

    Exit code: 0; 1 the cluster does not serve the trainer's API; 2 it cannot be asked.
    """
    del verbose
    shown: dict[str, Any] = {**versions()}
    if server:
        shown["server"] = asyncio.run(_server(Connection(None, context, kubeconfig)))
    printed = Output(sys.stdout)
    if output == "json":
        printed.json(shown)
    else:
        printed.line(f"trainplane {shown['trainplane']}, Python {shown['python']}")
        printed.line(f"API {shown['api']}")
        if server:
            _show_server(shown["server"], printed)
    return 1 if server and not shown["server"]["api"] else 0


def _show_server(found: dict[str, Any], output: Output) -> None:
    output.line(f"Kubernetes {found['kubernetes']} at {found['address']}")
    output.line(f"  serves {', '.join(found['api']) or 'no trainer API: ask an admin to install Trainplane'}")
    output.line(f"  hub view: {', '.join(found['hub']) or 'none'}")


async def _server(connection: Connection) -> dict[str, Any]:
    from trainplane.client.backends.kubernetes.versions import server_versions  # noqa: PLC0415 heavy

    async with connection.cluster() as client:
        return await server_versions(client)


def versions() -> dict[str, str]:
    """Return what this installation is."""
    import trainplane  # noqa: PLC0415 looks its version up, which other commands need not wait for
    from trainplane.api import names  # noqa: PLC0415 heavy

    return {"trainplane": trainplane.__version__, "api": names.API_VERSION, "python": platform.python_version()}
