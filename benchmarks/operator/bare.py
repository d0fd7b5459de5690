"""A controller without a cost: the writes of TrainJobs' whole lives, made by nobody but a client.

`bare.py KUBECONFIG NAMESPACE FIRST STEP COUNT WRITERS` takes the jobs FIRST, FIRST+STEP, … below COUNT. It says
`ready`, and does each step that a line tells it: `create` (TrainJob, snapshot, JobSet), `complete` (both statuses),
`tell` (the Event), answered by its name. What it writes is what ours writes, in the same order and by the same verbs;
what it does not have is a watch to learn from, webhooks and rendering. With as many of it as the API server takes, no
controller is faster.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import uvloop

from benchmarks.operator.jobs import MANAGER, RUNTIME, Bodies, Seen, completed, trainjob
from trainplane.kube.client import Client
from trainplane.kube.loading import load_config
from trainplane.kube.resource import EVENTS
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, CONFIG_MAPS, JOB_SETS, TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable


async def by_writers(names: Iterable[str], writers: int, write: Callable[[str], Awaitable[None]]) -> None:
    """Write for each name, so many at a time."""
    waiting = iter(names)

    async def work() -> None:
        for name in waiting:
            await write(name)

    await asyncio.gather(*(work() for _ in range(writers)))


class Bare:
    """The three steps of a job."""

    def __init__(self, client: Client, namespace: str, bodies: Bodies) -> None:
        self._client = client
        self._namespace = namespace
        self._bodies = bodies
        self._uids: dict[str, str] = {}

    async def create(self, name: str) -> None:
        """Create a TrainJob and what follows from it."""
        made = await self._client.create(TRAIN_JOBS, trainjob(name, self._namespace), self._namespace, type_=Seen)
        self._uids[name] = made.metadata.uid
        snapshot = self._body(self._bodies.snapshot, name)
        await self._client.create(CONFIG_MAPS, snapshot, self._namespace, field_manager=MANAGER, type_=bytes)
        jobset = self._body(self._bodies.jobset, name)
        await self._client.apply(JOB_SETS, jobset, field_manager=MANAGER, type_=bytes)

    async def complete(self, name: str) -> None:
        """Mark a JobSet as completed, and its TrainJob."""
        await mark(self._client, name, self._namespace)
        await self._client.patch(
            TRAIN_JOBS,
            name,
            self._bodies.status,
            self._namespace,
            subresource="status",
            field_manager=MANAGER,
            type_=bytes,
        )

    async def tell(self, name: str) -> None:
        """Tell of a TrainJob by an Event."""
        await self._client.create(EVENTS, self._body(self._bodies.event, name), self._namespace, type_=bytes)

    def _body(self, body: bytes, name: str) -> bytes:
        return Bodies.written_for(body, name, self._uids[name])


async def mark(client: Client, name: str, namespace: str) -> None:
    """Mark a JobSet as completed, as its controller would."""
    await client.patch(JOB_SETS, name, completed(), namespace, subresource="status", type_=bytes)


async def main(kubeconfig: str, namespace: str, names: list[str], writers: int) -> None:
    """Do steps as told until there are no more."""
    async with Client.connect(load_config(kubeconfig)) as client:
        bodies = Bodies.of(await client.get(CLUSTER_TRAINING_RUNTIMES, RUNTIME), namespace)
        bare = Bare(client, namespace, bodies)
        print("ready", flush=True)
        while step := (await asyncio.to_thread(sys.stdin.readline)).strip():
            await by_writers(names, writers, getattr(bare, step))
            print(step, flush=True)


if __name__ == "__main__":
    kubeconfig, namespace, *numbers = sys.argv[1:]
    first, apart, count, writers = map(int, numbers)
    uvloop.run(main(kubeconfig, namespace, [f"job-{number}" for number in range(first, count, apart)], writers))
