"""A worker whose control plane is gone for a while; its pods run on."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from lab.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster


@contextmanager
def control_plane_away(worker: Cluster, *, seconds: float, store: bool = False) -> Iterator[None]:
    """Kill a worker's control plane at one blow, with `store` its etcd too, and have it back at the end.

    The controller-manager goes with the API server, as when the machine is lost: one that outlives it may never collect
    the Jobs of a JobSet that was deleted right after, because CRDs are missing from discovery at first.

    Args:
        worker: whose.
        seconds: how long the API server may take to be back.
        store: whether etcd goes as well.
    """
    etcd = ("etcd",) if store else ()
    for engine in ("kube-apiserver", *etcd, "kube-controller-manager"):
        worker.kill(engine)
    try:
        yield
    finally:
        for engine in (*etcd, "kube-apiserver"):
            worker.revive(engine)
        worker.wait_ready(seconds)
        worker.revive("kube-controller-manager")
        wait_for("discovery to be whole", lambda: _serves_all(worker), seconds=seconds)


def _serves_all(worker: Cluster) -> bool:
    """Return whether every CRD is in discovery: a hub's Kueue connects to no worker where one of its own lacks."""
    known = {crd["metadata"]["name"] for crd in worker.get("crds")["items"]}
    found = worker.kubectl("api-resources", "--output=name", check=False)
    return found.code == 0 and known <= {*found.stdout.split()}
