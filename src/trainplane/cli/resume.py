"""`trainplane resume`: let TrainJobs go on that are suspended."""

from __future__ import annotations

import asyncio

from trainplane.cli.connection import Connection
from trainplane.cli.each import each
from trainplane.cli.options import Containers, Context, JobNames, Kubeconfig, Local, Namespace, Verbose


def command(
    jobs: JobNames,
    local: Local = False,
    containers: Containers = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Let TrainJobs go on that are suspended.

    What Kueue has in a queue starts when there is quota: `trainplane queue` says what it waits for.

    Exit code: 0 done; 2 it could not be done with one of them.
    """
    del verbose
    return asyncio.run(_work(jobs, Connection(namespace, context, kubeconfig, local=local, containers=containers)))


async def _work(jobs: list[str], connection: Connection) -> int:
    async with connection.client() as client:
        return await each(jobs, client.resume_job, lambda job: f"TrainJob {job} goes on")
