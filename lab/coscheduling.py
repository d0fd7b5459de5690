"""The coscheduling scheduler of scheduler-plugins on a cluster, beside the cluster's own: a gang starts whole or not.

It runs as scheduler-plugins ships it, under a name of its own, and places the pods that ask for it by that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from lab.engines import binary, manifests
from lab.webhooks import documents

if TYPE_CHECKING:
    from lab.cluster import Cluster

SCHEDULER = "scheduler-plugins-scheduler"
"""What pods name, as scheduler-plugins' chart does."""
POD_GROUPS = "podgroups.scheduling.x-k8s.io"
_ENGINE = "coscheduling"
_PORT = 10260


def install(cluster: Cluster) -> None:
    """Install the scheduler with its CRD and wait until it is ready."""
    shipped = manifests("scheduler-plugins") / "manifests/coscheduling"
    cluster.apply(*documents(shipped / "crd.yaml"))
    cluster.wait_established(POD_GROUPS)
    (settings,) = documents(shipped / "scheduler-config.yaml")
    (profile,) = settings["profiles"]
    profile["schedulerName"] = SCHEDULER
    settings["clientConnection"]["kubeconfig"] = str(cluster.kubeconfig)
    config = cluster.folder / f"{_ENGINE}.yaml"
    config.write_text(yaml.safe_dump(settings))
    pair = cluster.webhook_pair
    command = [
        binary("coscheduling-scheduler"),
        f"--config={config}",
        f"--authentication-kubeconfig={cluster.kubeconfig}",
        f"--authorization-kubeconfig={cluster.kubeconfig}",
        f"--secure-port={_PORT}",
        f"--tls-cert-file={pair.certificate}",
        f"--tls-private-key-file={pair.key}",
        # A gang that did not fit is not tried again when a pod ends, only after this time: 5 minutes, as shipped.
        "--pod-max-in-unschedulable-pods-duration=10s",
    ]
    cluster.start(_ENGINE, command)
    cluster.wait_http(_ENGINE, _PORT, tls="127.0.0.1")
