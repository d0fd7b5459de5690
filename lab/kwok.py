"""Simulated nodes: kwok plays the kubelet of as many nodes as asked, and their pods run at once and cost nothing."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import yaml

from lab.engines import binary

if TYPE_CHECKING:
    from lab.cluster import Cluster

_PORT = 10247
_WRITERS = 8
_PACE = {
    "podPlayStageParallelism": 64,
    "nodePlayStageParallelism": 16,
    "nodeLeaseParallelism": 8,
    "nodeLeaseDurationSeconds": 600,
}
"""Writes at once, and heartbeats by lease every 150 s: with the shipped 4 and a status patch per node every 20 s, 1,000
nodes keep kwok so busy that 5,000 pods take over ten minutes. The controller-manager's grace period fits it."""
TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
"""Keeps pods that want a real node off the simulated ones; a pod that tolerates it may go there."""


def install(
    cluster: Cluster, *, nodes: int, capacity: dict[str, str] | None = None, tainted: bool = False, prefix: str = "kwok"
) -> None:
    """Start kwok (once) and add simulated nodes; `capacity` adds to what each of them offers, GPUs for example."""
    if "kwok" not in cluster.engines():
        config = cluster.folder / "kwok.yaml"
        options = {"manageNodesWithAnnotationSelector": "kwok.x-k8s.io/node=fake", **_PACE}
        settings = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "options": options}
        config.write_text(yaml.safe_dump(settings))
        command = [
            binary("kwok"),
            f"--config={config}",
            f"--kubeconfig={cluster.kubeconfig}",
            f"--server-address=127.0.0.1:{_PORT}",
            f"--node-ip={cluster.address}",
        ]
        cluster.start("kwok", command)
        cluster.wait_http("kwok", _PORT, path="/healthz")
    objects = [_node(f"{prefix}-{number}", capacity or {}, tainted=tainted) for number in range(nodes)]

    def create(share: list[dict[str, Any]]) -> None:
        with cluster.connection() as connection:
            for node in share:
                connection.send("POST", "/api/v1/nodes", json.dumps(node))

    with ThreadPoolExecutor(_WRITERS) as pool:
        list(pool.map(create, [objects[start::_WRITERS] for start in range(_WRITERS)]))


def _node(name: str, capacity: dict[str, str], *, tainted: bool) -> dict[str, Any]:
    offered = {"cpu": "32", "memory": "256Gi", "pods": "110"} | capacity
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "type": "kwok"},
        },
        "spec": {"taints": [TAINT]} if tainted else {},
        "status": {"allocatable": offered, "capacity": offered},
    }
