"""`trainplane top`: a cluster or a hub at a glance."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from trainplane.cli.connection import Connection
from trainplane.cli.options import Context, Kubeconfig, Namespace, Verbose

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trainplane.cli.live.screen import View
    from trainplane.client.aio import AsyncTrainerClient
    from trainplane.client.types.overview import Overview

Once = Annotated[bool, typer.Option("--once", help="Print it once; so it is where there is no terminal.")]
Every = Annotated[float, typer.Option("--every", metavar="SECONDS", min=1, help="How often it is looked at.")]
NOTE = "Ctrl-C leaves"
RESTS = 5
"""How many times longer than a look the pause behind it is, at least."""
ROWS = 60
"""Of what is printed once."""


def command(
    once: Once = False,
    every: Every = 5,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Show the fleet at a glance.

    TrainJobs by phase, devices in use and idle, quota of all queues; workers of a hub and whether they are connected;
    ClusterQueues with used and free quota; TrainJobs that failed or wait the longest. What needs attention comes first,
    as much as fits, and the rest is counted. Of all namespaces, or of one with -n. What you may not read is said, and
    left out.

    Exit code: 0 it was shown; 2 not even TrainJobs can be read; 130 you left.
    """
    del verbose
    asyncio.run(_show(Connection(namespace, context, kubeconfig), every, once=once))
    return 0


async def _show(connection: Connection, every: float, *, once: bool) -> None:
    from trainplane.cli.live.screen import Screen, redraw  # noqa: PLC0415 Rich is slow to import

    screen = Screen()
    title = f"context {connection.context}" if connection.context else "cluster"
    whole = connection.namespace is None
    async with connection.client() as client:
        if once or not screen.is_live:
            screen.leave(view(await client.get_overview(whole=whole), title), ROWS)
            sys.stdout.flush()
            return
        with screen.open():
            looks = look_again(client, every, whole=whole)
            await redraw(looks, lambda seen: screen.show(view(seen, title, NOTE)))


def view(seen: Overview, title: str, note: str = "") -> View:
    """Return how an overview is drawn."""
    from trainplane.cli.live.fleet import fleet_view  # noqa: PLC0415 Rich is slow to import

    return lambda *where: fleet_view(seen, *where, title=title, note=note)


async def look_again(client: AsyncTrainerClient, every: float, *, whole: bool) -> AsyncGenerator[Overview, None]:
    """Yield an overview again and again; when none can be had after the first, the last with why.

    Where a look takes long, of very many objects say, it is taken more seldom: most of the time nothing is asked.
    """
    from dataclasses import replace  # noqa: PLC0415 rare

    from trainplane.client.errors import TrainplaneError  # noqa: PLC0415 heavy

    clock = asyncio.get_running_loop().time
    began = clock()
    seen = await client.get_overview(whole=whole)
    while True:
        took = clock() - began
        yield seen
        await asyncio.sleep(max(every, RESTS * took))
        began = clock()
        try:
            seen = await client.get_overview(whole=whole)
        except TrainplaneError as error:
            seen = replace(seen, unread={"now": f"this is as last seen: {error}", **seen.unread})
