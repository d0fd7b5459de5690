"""`trainplane runtimes`: what TrainJobs can run on."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from trainplane.cli.connection import Connection
from trainplane.cli.objects import FOR_PROGRAMS, show_objects
from trainplane.cli.options import Context, Format, Kubeconfig, Namespace, Verbose
from trainplane.cli.output import Output

if TYPE_CHECKING:
    from trainplane.client.types.runtimes import Runtime


def command(
    output: Format = "table",
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """List the runtimes that TrainJobs can run on.

    A namespace's own hides the cluster's of the same name. One that cannot be read, or that you may not see, is left
    out.

    Exit code: 0, also if there are none; 2 they cannot be read.
    """
    del verbose

    async def ask() -> list[Runtime]:
        async with Connection(namespace, context, kubeconfig).client() as client:
            return await client.list_runtimes()

    async def documents() -> list[dict[str, object]]:
        async with Connection(namespace, context, kubeconfig).backend() as backend:
            return await backend.list_runtime_documents()

    printed = Output(sys.stdout)
    if output in FOR_PROGRAMS:
        show_objects(asyncio.run(documents()), output, printed)
        return 0
    found = asyncio.run(ask())
    from trainplane.client.display.tables import runtimes_table  # noqa: PLC0415 heavy

    if found:
        printed.table(runtimes_table(found, wide=output == "wide"))
    else:
        Output(sys.stderr).line("There are no runtimes: an admin installs them, see docs/runtimes.md.")
    return 0
