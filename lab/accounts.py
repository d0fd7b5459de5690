"""Service accounts of processes that run beside the API server: in the lab as in a pod, nobody is administrator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import yaml

if TYPE_CHECKING:
    from pathlib import Path

    from lab.cluster import Cluster

_DURATION: Final = "24h"
"""How long tokens are good: longer than any run, for nobody renews them here as a kubelet would."""


def kubeconfig(cluster: Cluster, namespace: str, name: str) -> Path:
    """Return the kubeconfig of a service account that is there, with a token of its own; made once."""
    path = cluster.folder / f"{name}.kubeconfig"
    if path.exists():
        return path
    token = cluster.kubectl("create", "token", name, "-n", namespace, f"--duration={_DURATION}").stdout.strip()
    tree = yaml.safe_load(cluster.kubeconfig.read_text())
    tree["users"] = [{"name": tree["users"][0]["name"], "user": {"token": token}}]
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(tree, sort_keys=False))
    return path
