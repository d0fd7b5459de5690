"""Kubeflow's training operator v1.9.3 on a cluster: the Go controller of the older kinds that ours takes over from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from lab.engines import binary, manifests
from lab.images import reference as image
from lab.webhooks import beside, documents

if TYPE_CHECKING:
    from pathlib import Path

    from lab.cluster import Cluster

ENGINE = "training-operator"
NAMESPACE = "kubeflow"
KINDS = {
    "PyTorchJob": "pytorchjobs",
    "TFJob": "tfjobs",
    "XGBoostJob": "xgboostjobs",
    "PaddleJob": "paddlejobs",
    "JAXJob": "jaxjobs",
}
"""What it reconciles, and under which plural."""
_SECRET = "training-operator-webhook-cert"  # noqa: S105 the name of one
_SERVING = "/tmp/k8s-webhook-server/serving-certs"
_PREFIX = "training"
_MASTER = "{{.MasterAddr}}"
"""What the operator puts in: its template is Go's."""
_WEBHOOK_PORT = 9447
_HEALTH_PORT = 8097


def install_crds(cluster: Cluster) -> None:
    """Install its CRDs, without that of MPIJob v1: another operator has the name, and the two exclude each other."""
    folder = manifests(ENGINE) / "manifests/base/crds"
    cluster.apply(*documents(*(folder / f"kubeflow.org_{plural}.yaml" for plural in KINDS.values())))
    cluster.wait_established(*(f"{plural}.kubeflow.org" for plural in KINDS.values()))


def install(cluster: Cluster, *, qps: int = 20, with_crds: bool = True) -> None:
    """Install it and wait until it is ready; `qps` lifts the limit of its client from the shipped one.

    It draws an authority of its own and puts that into the webhook configuration of a fixed name. Ours has another
    name, so that the cluster's authority stays in it; what it drew lies unused in its Secret.
    """
    if with_crds:
        install_crds(cluster)
    cluster.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": _SECRET, "namespace": NAMESPACE}},
    )
    _mount_certificates(cluster)
    command = [
        binary("training-operator"),
        f"--kubeconfig={cluster.kubeconfig}",
        f"--webhook-server-port={_WEBHOOK_PORT}",
        f"--health-probe-bind-address=127.0.0.1:{_HEALTH_PORT}",
        "--metrics-bind-address=0",
        f"--kube-api-qps={qps}",
        f"--kube-api-burst={qps * 2}",
        f"--pytorch-init-container-template-file={_init_container(cluster)}",
        # As an admin starts it who runs mpi-operator for MPIJobs.
        *(f"--enable-scheme={kind}" for kind in KINDS),
    ]
    cluster.start(ENGINE, command)
    wait_ready(cluster)
    cluster.apply(*_webhooks(cluster))


def stop(cluster: Cluster) -> None:
    """End it and remove its webhooks, as in a takeover; CRDs and jobs stay."""
    names = [configuration["metadata"]["name"] for configuration in _webhooks(cluster)]
    cluster.kubectl("delete", "validatingwebhookconfiguration", "--ignore-not-found", *names)
    cluster.kill(ENGINE)


def resume(cluster: Cluster) -> None:
    """Start it again after `stop`, as in a rollback."""
    cluster.revive(ENGINE)
    wait_ready(cluster)
    cluster.apply(*_webhooks(cluster))


def wait_ready(cluster: Cluster) -> None:
    """Wait until it is ready, after a start or a `cluster.revive`."""
    cluster.wait_http(ENGINE, _HEALTH_PORT)


def _webhooks(cluster: Cluster) -> list[dict[str, Any]]:
    shipped = documents(manifests(ENGINE) / "manifests/base/webhook/manifests.yaml")
    return beside(cluster, shipped, prefix=_PREFIX, port=_WEBHOOK_PORT)


def _init_container(cluster: Cluster) -> Path:
    """Write down by what a worker awaits its master: the shipped way needs a program that the lab's images lack."""
    waits = f"until getent hosts {_MASTER}; do sleep 0.5; done"
    container = {"name": "init-pytorch", "image": image("python"), "command": ["sh", "-c", waits]}
    path = cluster.folder / f"{ENGINE}-init.yaml"
    path.write_text(yaml.safe_dump([container]))
    return path


def _mount_certificates(cluster: Cluster) -> None:
    """Put a serving certificate where it looks, a path that no flag moves, in the cluster's own view of the disk."""
    pair = cluster.webhook_pair
    script = f"mkdir -p {_SERVING} && mount -t tmpfs tmpfs {_SERVING} && cp {pair.certificate} {pair.key} {_SERVING}"
    cluster.sandbox.run(["sh", "-euc", script])
