"""The example controller of examples/controller, run as a newcomer would run it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.integration.kube.support import CONFIGMAPS, until
from trainplane.kube.errors import NotFoundError
from trainplane.kube.resource import PODS

if TYPE_CHECKING:
    from lab.cluster import Cluster
    from trainplane.kube.client import Client

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "controller" / "controller.py"


def pod(name: str, namespace: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "none"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


async def counted(client: Client, namespace: str) -> str | None:
    try:
        return str((await client.get(CONFIGMAPS, "census", namespace))["data"]["pods"])
    except NotFoundError:
        return None


async def says(client: Client, namespace: str, number: str) -> bool:
    return await counted(client, namespace) == number


async def test_it_counts_mends_and_stops(cluster: Cluster, client: Client, namespace: str) -> None:
    cluster.kubectl("wait", "--for=create", "--timeout=120s", "serviceaccount/default", "-n", namespace)
    await client.create(PODS, pod("a", namespace))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLE),
        env=os.environ | {"KUBECONFIG": str(cluster.kubeconfig), "PYTHONPATH": str(ROOT / "src")},
    )
    try:
        await until(lambda: says(client, namespace, "1"), "the pod that was there before")
        await client.create(PODS, pod("b", namespace))
        await until(lambda: says(client, namespace, "2"), "a new pod")
        await client.delete(CONFIGMAPS, "census", namespace)
        await until(lambda: says(client, namespace, "2"), "a census that somebody deleted")
        await client.patch(CONFIGMAPS, "census", {"data": {"pods": "17"}}, namespace)
        await until(lambda: says(client, namespace, "2"), "a census that somebody changed")
        await client.delete(PODS, "a", namespace, grace_seconds=0)
        await client.delete(PODS, "b", namespace, grace_seconds=0)
        await until(lambda: says(client, namespace, "0"), "no pods")
    finally:
        process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 20) == 0


def test_it_can_be_read_in_two_minutes() -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 40
