"""Volcano on a cluster, beside the cluster's own scheduler: its CRDs, its scheduler and its controllers.

The controllers open the queues and make groups for pods that have none. Its webhooks check and complete objects of
Volcano's own, which nobody writes here, and are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.engines import binary, manifests
from lab.processes import wait_for
from lab.webhooks import documents

if TYPE_CHECKING:
    from lab.cluster import Cluster

SCHEDULER = "volcano"
"""What pods name."""
POD_GROUPS = "podgroups.scheduling.volcano.sh"
_QUEUES = "queues.scheduling.volcano.sh"
_HEALTH_PORTS = {"vc-scheduler": 11251, "vc-controller-manager": 11252}
_READY_SECONDS = 90


def install(cluster: Cluster) -> None:
    """Install Volcano and wait until its default queue is open."""
    shipped = manifests("volcano")
    crds = documents(*sorted((shipped / "config/crd/volcano/bases").glob("*.yaml")))
    cluster.apply(*crds)
    cluster.wait_established(*(crd["metadata"]["name"] for crd in crds))
    # The scheduler looks in its configuration again whenever the file's folder changes: it gets a folder of its own.
    config = cluster.folder / "volcano" / "volcano-scheduler.conf"
    config.parent.mkdir()
    config.write_bytes((shipped / "installer/helm/chart/volcano/config" / config.name).read_bytes())
    options = {
        "vc-scheduler": f"--scheduler-conf={config}",
        # The others serve objects of Volcano's own, some of whose CRDs are in another chart and would be waited for.
        "vc-controller-manager": "--controllers=+queue-controller,+pg-controller",
    }
    for name, port in _HEALTH_PORTS.items():
        common = [
            f"--kubeconfig={cluster.kubeconfig}",
            "--leader-elect=false",
            "--enable-healthz=true",
            f"--healthz-address=127.0.0.1:{port}",
        ]
        cluster.start(name, [binary(name), *common, options[name]])
    for name, port in _HEALTH_PORTS.items():
        cluster.wait_http(name, port, path="/healthz")

    def is_open() -> bool:
        return cluster.kubectl("get", _QUEUES, "default", "-o=jsonpath={.status.state}", check=False).stdout == "Open"

    wait_for("Volcano's default queue", is_open, seconds=_READY_SECONDS, log=cluster.log("vc-controller-manager"))
