"""`trainplane scale`: another number of nodes for a TrainJob."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import typer

from trainplane.cli.connection import Connection
from trainplane.cli.options import Containers, Context, JobName, Kubeconfig, Local, Namespace, Verbose
from trainplane.cli.output import Output

Nodes = Annotated[int, typer.Argument(metavar="NODES", help="How many nodes it is to have.", show_default=False)]


def command(
    job: JobName,
    nodes: Nodes,
    local: Local = False,
    containers: Containers = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Let a TrainJob go on with another number of nodes.

    It starts again, from its last checkpoint if it has one. The API keeps the number of nodes as it was created, so on
    a cluster the TrainJob is deleted and created again under its name, and the logs so far go with its pods. Before
    that the cluster is asked whether it takes the new one; if not, nothing happens.

    Exit code: 0 it has that number of nodes; 2 it cannot be scaled, and is as it was.
    """
    del verbose
    connection = Connection(namespace, context, kubeconfig, local=local, containers=containers)
    asyncio.run(_work(job, nodes, connection))
    Output(sys.stdout).line(f"TrainJob {job} has {nodes} node{'' if nodes == 1 else 's'}")
    return 0


async def _work(job: str, nodes: int, connection: Connection) -> None:
    async with connection.client() as client:
        await client.scale_job(job, nodes)
