"""cert-manager's CRDs on a cluster: its API server then judges what is made for cert-manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lab.engines import manifests
from lab.webhooks import documents

if TYPE_CHECKING:
    from lab.cluster import Cluster

_CRDS: Final = ("certificates", "issuers")


def install_crds(cluster: Cluster) -> None:
    """Install the CRDs of what charts ask cert-manager for."""
    folder = manifests("cert-manager") / "deploy/crds"
    cluster.apply(*documents(*(folder / f"cert-manager.io_{name}.yaml" for name in _CRDS)))
    cluster.wait_established(*(f"{name}.cert-manager.io" for name in _CRDS))
