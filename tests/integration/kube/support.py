"""What several tests of this folder need."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from lab import etcd
from trainplane.kube.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from lab.cluster import Cluster


CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
WIDGETS = Resource("lab.trainplane.dev", "v1", "widgets", "Widget")

_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 1_000_000}}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
WIDGET_CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{WIDGETS.plural}.{WIDGETS.group}"},
    "spec": {
        "group": WIDGETS.group,
        "scope": "Namespaced",
        "names": {"plural": WIDGETS.plural, "singular": "widget", "kind": WIDGETS.kind},
        "versions": [
            {
                "name": WIDGETS.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": _SCHEMA},
            }
        ],
    },
}


def configmap(name: str, namespace: str, *, labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def widget(name: str, namespace: str, size: int) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": WIDGETS.api_version, "kind": WIDGETS.kind, "metadata": metadata, "spec": {"size": size}}


async def until(condition: Callable[[], bool | Awaitable[bool]], what: str, *, seconds: float = 60.0) -> None:
    """Wait for something of another process, which has no event of its own to wait for."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            while not (met if isinstance(met := condition(), bool) else await met):  # noqa: ASYNC110 it has no event
                await asyncio.sleep(0.01)
    except TimeoutError:
        if not limit.expired():
            raise
        raise AssertionError(f"{what}: not within {seconds:g} s") from None


def compact(cluster: Cluster, revision: str) -> None:
    """Make etcd forget everything before a revision, as the API server does every five minutes."""
    etcd.ask(cluster.sandbox, "/v3/kv/compaction", {"revision": revision, "physical": True})
