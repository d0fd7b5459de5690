"""Fill an API server with TrainJobs and JobSets: `python load.py KUBECONFIG COUNT`. Runs in the cluster's network.

The API server makes the first of each kind, with all its defaults and checks. The others are copies of what it stored,
with names and uids of their own, put into etcd in bulk: the API server serves them like any other, and 200,000 writes
through its validation would take half an hour that measures nothing of ours.
"""

from __future__ import annotations

import base64
import sys
import time
import uuid
from typing import Any

import aiohttp
import msgspec
import uvloop
from objects import JOBS_PER_NAMESPACE, JOBSETS, TRAINJOBS, jobset, namespace, trainjob

from trainplane.kube.client import Client
from trainplane.kube.loading import load_config
from trainplane.kube.resource import Resource

_ETCD = "http://127.0.0.1:2379/v3/kv/"
_BATCH = 100
"""Writes in one transaction: etcd's default allows 128."""
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


async def load(kubeconfig: str, count: int) -> None:
    """Create `count` TrainJobs and as many JobSets, with progress."""
    start = time.monotonic()
    async with Client.connect(load_config(kubeconfig)) as client:
        for first in range(0, count, JOBS_PER_NAMESPACE):
            name = namespace(first)
            await client.create(_NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await client.create(TRAINJOBS, trainjob(0), namespace(0))
        await client.create(JOBSETS, jobset(0), namespace(0))
    async with aiohttp.ClientSession() as etcd:
        stored = [await _stored(etcd, resource) for resource in (TRAINJOBS, JOBSETS)]
        puts: list[dict[str, Any]] = []
        for number in range(1, count):
            puts += [_put(resource, tree, number) for resource, tree in zip((TRAINJOBS, JOBSETS), stored, strict=True)]
            if len(puts) >= _BATCH or number == count - 1:
                await _call(etcd, "txn", {"success": puts})
                puts = []
            if number % 10_000 == 0:
                print(f"loaded {number} of {count}, {time.monotonic() - start:.0f} s", flush=True)
    print(f"loaded {count} in {time.monotonic() - start:.1f} s", flush=True)


def _key(resource: Resource, number: int) -> str:
    return f"/registry/{resource.group}/{resource.plural}/{namespace(number)}/job-{number}"


async def _stored(etcd: aiohttp.ClientSession, resource: Resource) -> dict[str, Any]:
    """Return an object as the API server keeps it."""
    answer = await _call(etcd, "range", {"key": _text(_key(resource, 0).encode())})
    tree: dict[str, Any] = msgspec.json.decode(base64.b64decode(answer["kvs"][0]["value"]))
    return tree


def _put(resource: Resource, tree: dict[str, Any], number: int) -> dict[str, Any]:
    place = {"name": f"job-{number}", "namespace": namespace(number), "labels": {"team": namespace(number)}}
    metadata = tree["metadata"] | place | {"uid": str(uuid.uuid4())}
    value = msgspec.json.encode(tree | {"metadata": metadata})
    return {"requestPut": {"key": _text(_key(resource, number).encode()), "value": _text(value)}}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def _call(etcd: aiohttp.ClientSession, method: str, body: dict[str, Any]) -> dict[str, Any]:
    async with etcd.post(_ETCD + method, data=msgspec.json.encode(body)) as response:
        response.raise_for_status()
        answer: dict[str, Any] = msgspec.json.decode(await response.read())
        return answer


if __name__ == "__main__":
    uvloop.run(load(sys.argv[1], int(sys.argv[2])))
