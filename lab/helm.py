"""Helm on a cluster, as an admin types it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.engines import binary
from lab.processes import Result, run

if TYPE_CHECKING:
    from lab.cluster import Cluster


def helm(cluster: Cluster, *arguments: str, check: bool = True) -> Result:
    """Run helm as the administrator; its caches stay in the cluster's folder."""
    home = {f"HELM_{name}_HOME": str(cluster.folder / "helm" / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
    command = [binary("helm"), f"--kubeconfig={cluster.kubeconfig}", *arguments]
    return run(command, check=check, environment=home)
