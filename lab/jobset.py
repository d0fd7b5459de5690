"""JobSet on a cluster: its CRD, its controller beside the API server, its webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from lab.engines import binary, manifests
from lab.webhooks import beside, documents

if TYPE_CHECKING:
    from lab.cluster import Cluster

_WEBHOOK_PORT = 9444
_HEALTH_PORT = 8091


def install_crd(cluster: Cluster) -> None:
    """Install the CRD alone: all that a MultiKueue hub needs."""
    cluster.apply(*documents(*sorted((manifests("jobset") / "config/components/crd/bases").glob("*.yaml"))))
    cluster.wait_established("jobsets.jobset.x-k8s.io")


def install(cluster: Cluster) -> None:
    """Install JobSet and wait until it is ready.

    The pod webhooks are left out: they serve exclusive placement alone, and would put JobSet in the way of every pod.
    """
    install_crd(cluster)
    config = cluster.folder / "jobset.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
                "kind": "Configuration",
                "webhook": {
                    "host": "127.0.0.1",
                    "port": _WEBHOOK_PORT,
                    "certDir": str(cluster.webhook_pair.key.parent),
                },
                "health": {"healthProbeBindAddress": f"127.0.0.1:{_HEALTH_PORT}"},
                "metrics": {"bindAddress": "0"},
                "leaderElection": {"leaderElect": False},
                "internalCertManagement": {"enable": False},
                "clientConnection": {"qps": 500, "burst": 1000},
            }
        )
    )
    cluster.start("jobset", [binary("jobset"), f"--config={config}", f"--kubeconfig={cluster.kubeconfig}"])
    cluster.wait_http("jobset", _HEALTH_PORT)
    shipped = documents(manifests("jobset") / "config/components/webhook/manifests.yaml")
    configurations = beside(
        cluster, shipped, prefix="jobset", port=_WEBHOOK_PORT, keep=lambda webhook: "pod" not in webhook["name"]
    )
    cluster.apply(*configurations)
