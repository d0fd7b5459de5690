"""The operator's webhooks as a process of their own, under a memory limit: what the attacks of `test_bombs` are run on.

`python -m tests.security.webhook_process` serves the real `WebhookServer` with the real routes, on loopback without
TLS, and prints its port. What the routes would read from an API server stands in a storage in memory, which the test
fills by `/put`; `/reconcile` lets the operator's own reconciler look at a TrainJob.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import yaml
from aiohttp import web

from tests.unit.operator.world import World
from trainplane.kube.listener import Listener, ListenerSettings
from trainplane.kube.webhook import WebhookServer
from trainplane.operator.webhooks import Webhooks
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, CONFIG_MAPS, JOB_SETS, TRAIN_JOBS, TRAINING_RUNTIMES

if TYPE_CHECKING:
    from trainplane.kube.resource import Resource

RUNTIMES = Path(__file__).parents[2] / "runtimes"
MEMORY = 1 << 30
"""Bytes of address space beyond what the process begins with: an attack that works ends here, not the machine."""

_BY_KIND: dict[str, Resource] = {
    one.kind: one for one in (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, CONFIG_MAPS, JOB_SETS, TRAIN_JOBS)
}


class Behind:
    """The test's own door: puts objects into the storage, and lets a TrainJob be reconciled."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def serve(self, request: web.BaseRequest) -> web.Response:
        tree = msgspec.json.decode(await request.read())
        if request.path == "/put":
            self._world.put(_BY_KIND[tree["kind"]], tree)
            self._world.sync()
            return web.Response()
        problem = ""
        try:
            await self._world.reconcile(tree["name"])
        except Exception as error:  # noqa: BLE001 the controller would count it and try again
            problem = f"{type(error).__name__}: {error}"
        jobset = self._world.job_set(tree["name"]) is not None
        messages = [message for message in self._world.messages() if message]
        return web.Response(body=msgspec.json.encode({"problem": problem, "jobset": jobset, "messages": messages}))


async def main() -> None:
    """Serve until the end of standard input."""
    world = World()
    for file in sorted(RUNTIMES.glob("*.yaml")):
        for tree in filter(None, yaml.safe_load_all(file.read_text())):
            world.put(CLUSTER_TRAINING_RUNTIMES, {**tree, "metadata": {**tree["metadata"], "uid": f"uid-{file.stem}"}})
    world.sync()
    routes = Webhooks(world.client, world.runtimes, world.snapshots, world.pipeline, world.clock).routes()
    server = WebhookServer(routes, ListenerSettings(0, "127.0.0.1"))
    behind = Listener(Behind(world).serve, ListenerSettings(0, "127.0.0.1"))
    async with server.listener, behind:
        limit = _address_space() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        print(server.listener.port, behind.port, flush=True)  # noqa: T201 what the test waits for
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    asyncio.run(main())
