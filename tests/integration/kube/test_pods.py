"""Logs and commands of real pods, through the real API server and kubelet."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.kube.support import until
from trainplane.kube.client import Client
from trainplane.kube.codec import decode
from trainplane.kube.errors import ApiError, BadRequestError, NotFoundError, StreamError
from trainplane.kube.loading import load_config
from trainplane.kube.resource import NAMESPACES, PODS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from lab.cluster import Cluster

TALK = """
import time
for n in range(5):
    print("line", n, flush=True)
    time.sleep(0.2)
print("end", end="", flush=True)
"""
STAY = """
import signal
signal.pause()
"""


def pod(name: str, namespace: str, program: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "lab.trainplane.dev/python:1",
        "imagePullPolicy": "Never",
        "command": ["python3", "-c", program],
    }
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


@pytest.fixture
async def client(node_cluster: Cluster) -> AsyncIterator[Client]:
    async with Client.connect(load_config(node_cluster.kubeconfig)) as open_:
        yield open_


@pytest.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    name = f"pods-{uuid.uuid4().hex[:8]}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.create(NAMESPACES, body)
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    await until(lambda: exists(client, account), "the service account, without which pods are refused")
    yield name
    await client.delete(NAMESPACES, name)


async def exists(client: Client, path: str) -> bool:
    try:
        await client.raw("GET", path)
    except NotFoundError:
        return False
    return True


async def start(client: Client, body: dict[str, Any], phases: set[str]) -> None:
    """Create a pod and wait until it is in one of the phases."""
    made = await client.create(PODS, body)
    meta = made["metadata"]
    stream = client.watch(
        PODS, meta["namespace"], resource_version=meta["resourceVersion"], fields={"metadata.name": meta["name"]}
    )
    async with asyncio.timeout(90):
        async for event in stream:
            if event.type == "MODIFIED" and decode(event.object, dict)["status"]["phase"] in phases:
                break
    await stream.aclose()


async def test_logs_are_followed_to_the_end_and_read_in_part(client: Client, namespace: str) -> None:
    await start(client, pod("talk", namespace, TALK), {"Running", "Succeeded"})
    followed = [line async for line in client.logs(namespace, "talk", follow=True)]
    said = [b"line 0", b"line 1", b"line 2", b"line 3", b"line 4", b"end"]
    assert followed == said
    assert [line async for line in client.logs(namespace, "talk", container="main")] == said
    assert [line async for line in client.logs(namespace, "talk", tail_lines=2)] == said[-2:]
    stamped = [line async for line in client.logs(namespace, "talk", timestamps=True)]
    assert all(line.split(b" ", 1)[0].endswith(b"Z") for line in stamped)
    with pytest.raises(BadRequestError):
        await anext(client.logs(namespace, "talk", container="nobody"))
    with pytest.raises(NotFoundError):
        await anext(client.logs(namespace, "nowhere"))


async def test_commands_run_with_their_output_input_and_code(client: Client, namespace: str) -> None:
    await start(client, pod("stay", namespace, STAY), {"Running"})
    shell = ["sh", "-c", "echo out; echo err >&2; exit 3"]
    assert await client.exec(namespace, "stay", shell) == (b"out\n", b"err\n", 3)
    assert (await client.exec(namespace, "stay", ["true"], container="main")).code == 0
    text = bytes(range(256)) * 8192
    echoed = await client.exec(namespace, "stay", ["cat"], stdin=text)
    assert (echoed.code, echoed.stdout == text) == (0, True)
    assert (await client.exec(namespace, "stay", ["wc", "-c"], stdin=b"")).stdout.strip() == b"0"
    with pytest.raises(NotFoundError):
        await client.exec(namespace, "nowhere", ["true"])
    with pytest.raises(ApiError, match="nothing-of-that-name"):
        await client.exec(namespace, "stay", ["nothing-of-that-name"])
    with pytest.raises(StreamError, match="did not end within"):
        await client.exec(namespace, "stay", ["sleep", "60"], timeout_seconds=0.5)
