"""The coscheduling scheduler of scheduler-plugins on a cluster, beside the cluster's own: a gang starts whole or not.

It runs as scheduler-plugins ships it, under a name of its own, and places the pods that ask for it by that name.
"""

from __future__ import annotations

import http.client
import ssl
from typing import TYPE_CHECKING

import yaml

from lab.engines import binary, manifests
from lab.processes import wait_for
from lab.webhooks import documents

if TYPE_CHECKING:
    from lab.cluster import Cluster

SCHEDULER = "scheduler-plugins-scheduler"
"""What pods name, as scheduler-plugins' chart does."""
POD_GROUPS = "podgroups.scheduling.x-k8s.io"
_ENGINE = "coscheduling"
_PORT = 10260
_READY_SECONDS = 90


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
    wait_for(_ENGINE, lambda: _is_ready(cluster), seconds=_READY_SECONDS, log=cluster.log(_ENGINE))


def _is_ready(cluster: Cluster) -> bool:
    """Tell if its informers are in step with the API server, in the words of its health check; it has no plain port."""
    with cluster.sandbox.entered():
        context = ssl.create_default_context(cafile=str(cluster.authority))
        connection = http.client.HTTPSConnection("127.0.0.1", _PORT, timeout=5, context=context)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except OSError:
            return False
        finally:
            connection.close()
