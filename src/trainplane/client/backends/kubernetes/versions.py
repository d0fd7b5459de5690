"""What a cluster is: its Kubernetes, and the versions that it serves of our APIs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.document import decode_tree
from trainplane.client.together import together
from trainplane.kube.errors import NotFoundError

if TYPE_CHECKING:
    from trainplane.kube.client import Client


async def server_versions(client: Client) -> dict[str, Any]:
    """Return a cluster's address and Kubernetes, and what it serves of the trainer's API and of the hub view.

    Every caller who is known to the cluster may ask this.

    Raises:
        KubeError: the cluster cannot be asked.
    """
    told, api, hub = await together(
        client.transport.request("GET", "/version"), _served(client, names.GROUP), _served(client, names.HUB_GROUP)
    )
    kubernetes = trees.text(decode_tree(told.body), "gitVersion") or "unknown"
    return {"address": client.transport.config.server, "kubernetes": kubernetes, "api": api, "hub": hub}


async def _served(client: Client, group: str) -> list[str]:
    """Return the versions of an API group that a cluster serves."""
    try:
        answer = await client.transport.request("GET", f"/apis/{group}")
    except NotFoundError:
        return []
    return [str(one.get("groupVersion")) for one in trees.entries(decode_tree(answer.body), "versions")]
