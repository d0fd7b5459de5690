"""What our operator needs on a cluster beside its own, to serve older kinds: their CRDs, and more rights and webhooks.

Kinds are named by their plurals, as `legacy.kinds` of its settings has them.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from lab.images import reference as image
from lab.paths import REPOSITORY
from lab.webhooks import documents

if TYPE_CHECKING:
    from lab.cluster import Cluster

_CRDS = REPOSITORY / "manifests/crds-legacy"
_SHIPPED = REPOSITORY / "manifests/legacy"


def install_crds(cluster: Cluster, kinds: tuple[str, ...], port: int) -> None:
    """Install the CRDs of these kinds; one that is converted asks at a port of the node instead of a Service."""
    bundle = base64.b64encode(cluster.authority.read_bytes()).decode()
    crds = [crd for crd in documents(*sorted(_CRDS.glob("*.yaml"))) if crd["spec"]["names"]["plural"] in kinds]
    for crd in crds:
        if webhook := crd["spec"].get("conversion", {}).get("webhook"):
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}
    cluster.apply(*crds)
    cluster.wait_established(*(crd["metadata"]["name"] for crd in crds))


def rights() -> list[dict[str, Any]]:
    """Return the roles that an operator of older kinds has beside its own."""
    return documents(_SHIPPED / "rbac.yaml")


def webhook_configurations(kinds: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the webhook configurations of these kinds, before they are pointed at this machine."""
    found = documents(_SHIPPED / "webhooks.yaml")
    for configuration in found:
        configuration["webhooks"] = [
            webhook
            for webhook in configuration["webhooks"]
            if any(plural in kinds for rule in webhook["rules"] for plural in rule["resources"])
        ]
    return found


def settings(kinds: tuple[str, ...]) -> dict[str, Any]:
    """Return the section of the operator's settings, with an image that the lab has."""
    return {"kinds": list(kinds), "initImage": image("python")}
