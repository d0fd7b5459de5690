"""Fill an API server with TrainJobs and their JobSets: `python load.py KUBECONFIG COUNT`."""

from __future__ import annotations

import asyncio
import sys
import time

import uvloop
from objects import JOBS_PER_NAMESPACE, JOBSETS, TRAINJOBS, jobset, namespace, trainjob

from trainplane.kube.client import Client
from trainplane.kube.config import load_config
from trainplane.kube.resource import Resource

_WRITERS = 32
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


async def load(kubeconfig: str, count: int) -> None:
    """Create `count` TrainJobs and as many JobSets, with progress."""
    start = time.monotonic()
    async with Client.connect(load_config(kubeconfig)) as client:
        for first in range(0, count, JOBS_PER_NAMESPACE):
            name = namespace(first)
            await client.create(_NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        numbers = iter(range(count))

        async def write() -> None:
            for number in numbers:
                await client.create(TRAINJOBS, trainjob(number), namespace(number))
                await client.create(JOBSETS, jobset(number), namespace(number))
                if number % 5000 == 4999:
                    print(f"loaded {number + 1} of {count}, {time.monotonic() - start:.0f} s", flush=True)

        await asyncio.gather(*(write() for _ in range(_WRITERS)))
    print(f"loaded {count} in {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    uvloop.run(load(sys.argv[1], int(sys.argv[2])))
