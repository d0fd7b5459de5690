"""Our operator on a cluster: its CRDs, the process beside the API server, its webhooks, its Service for pods.

The lab starts it as an admin would, by `python -m trainplane.operator` and a settings file, under its service account
and the roles that we ship; it imports nothing of it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import yaml

from lab import accounts, legacy
from lab.paths import REPOSITORY
from lab.webhooks import beside, documents

if TYPE_CHECKING:
    from pathlib import Path

    from lab.cluster import Cluster
    from lab.processes import Process

ENGINE = "trainplane"
NAMESPACE = "kubeflow-system"
ACCOUNT = "kubeflow-trainer-controller-manager"
GROUP = "trainer.kubeflow.org"
PLURALS = ("trainjobs", "trainingruntimes", "clustertrainingruntimes")
WEBHOOK_PORT = 9446
HEALTH_PORT = 8096
METRICS_PORT = 8446
STATUS_PORT = 10446
SERVICE = f"{ACCOUNT}.{NAMESPACE}.svc"


def install_crds(cluster: Cluster) -> None:
    """Install our CRDs."""
    cluster.apply(*documents(*sorted((REPOSITORY / "manifests/crds").glob("*.yaml"))))
    cluster.wait_established(*(f"{plural}.{GROUP}" for plural in PLURALS))


def install(
    cluster: Cluster,
    *,
    qps: float | None = None,
    workers: int | None = None,
    with_crds: bool = True,
    with_webhooks: bool = True,
    with_progress: bool = True,
    prefix: str = ENGINE,
    settings: dict[str, Any] | None = None,
    older: tuple[str, ...] = (),
) -> Process:
    """Install our operator and wait until it is ready; `settings` adds to its configuration file.

    Pods report progress, as they do by default; without it, the operator does what the reference does by default.
    `older` are the plurals of older kinds that it serves, with the CRDs, rights and webhooks that this takes.
    `prefix` is that of its webhooks' names, in whose order the API server calls them; `uninstall` knows only the usual.
    """
    if with_crds:
        install_crds(cluster)
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    cluster.apply(*rights())
    added = dict(settings or {})
    if older:
        legacy.install_crds(cluster, older, WEBHOOK_PORT)
        cluster.apply(*legacy.rights())
        added["legacy"] = legacy.settings(older) | added.get("legacy", {})
    config = cluster.folder / f"{ENGINE}.yaml"
    gates = {} if with_progress else {"featureGates": {"TrainJobStatus": False}}
    config.write_text(yaml.safe_dump({**configuration(qps=qps, workers=workers), **gates, **added}))
    if with_progress:
        cluster.apply(*status_service(cluster))
    command = [
        *(sys.executable, "-m", "trainplane.operator"),
        f"--config={config}",
        f"--kubeconfig={kubeconfig(cluster)}",
        f"--namespace={NAMESPACE}",
        f"--webhook-cert-dir={_certificates(cluster)}",
    ]
    process = cluster.start(ENGINE, command, {"PYTHONPATH": str(REPOSITORY / "src")})
    wait_ready(cluster)
    if with_webhooks:
        shipped = [*webhook_configurations(), *(legacy.webhook_configurations(older) if older else ())]
        cluster.apply(*beside(cluster, shipped, prefix=prefix, port=WEBHOOK_PORT), *policies())
    return process


def uninstall(cluster: Cluster) -> None:
    """End our operator and remove its webhooks and policies; CRDs and objects stay, as in a takeover."""
    for kind in ("mutating", "validating"):
        shipped = [*webhook_configurations(), *legacy.webhook_configurations(())]
        names = [f"{ENGINE}-{one['metadata']['name']}" for one in shipped if kind in one["kind"].lower()]
        cluster.kubectl("delete", f"{kind}webhookconfiguration", "--ignore-not-found", *names)
    judged = [f"{one['kind'].lower()}/{one['metadata']['name']}" for one in policies()]
    cluster.kubectl("delete", "--ignore-not-found", *judged)
    if cluster.engines()[ENGINE].process.alive():
        cluster.kill(ENGINE)


def wait_ready(cluster: Cluster) -> None:
    """Wait until the operator is ready, after a start or a `cluster.revive`."""
    cluster.wait_http(ENGINE, HEALTH_PORT)


def configuration(*, qps: float | None = None, workers: int | None = None) -> dict[str, Any]:
    """Return the operator's configuration file, in the reference's own words."""
    tree: dict[str, Any] = {
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
        "kind": "Configuration",
        "webhook": {"host": "127.0.0.1", "port": WEBHOOK_PORT},
        "metrics": {"bindAddress": f"127.0.0.1:{METRICS_PORT}", "secureServing": False},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{HEALTH_PORT}"},
        "certManagement": {"enable": False},
        "statusServer": {"port": STATUS_PORT},
    }
    if qps is not None:
        tree["clientConnection"] = {"qps": qps, "burst": int(qps * 2)}
    if workers is not None:
        tree["controller"] = {"groupKindConcurrency": {f"TrainJob.{GROUP}": workers}}
    return tree


def status_service(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the Service by which pods reach the operator, and where that is: on the node, not in a pod."""
    port = {"name": "status-server", "port": STATUS_PORT, "protocol": "TCP"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": ACCOUNT, "namespace": NAMESPACE},
        "spec": {"ports": [port]},
    }
    place = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": ACCOUNT,
            "namespace": NAMESPACE,
            "labels": {"kubernetes.io/service-name": ACCOUNT},
        },
        "addressType": "IPv4",
        "ports": [port],
        "endpoints": [{"addresses": [cluster.address], "conditions": {"ready": True}}],
    }
    return [service, place]


def kubeconfig(cluster: Cluster) -> Path:
    """Return the kubeconfig of the operator's service account."""
    return accounts.kubeconfig(cluster, NAMESPACE, ACCOUNT)


def rights() -> list[dict[str, Any]]:
    """Return the operator's account and roles, and the Lease of its election, which it may not create."""
    shared = documents(REPOSITORY / "manifests/base/manager/shared.yaml")
    return [
        *documents(REPOSITORY / "manifests/base/rbac/roles.yaml"),
        *(one for one in shared if one["kind"] == "Lease"),
    ]


def webhook_configurations() -> list[dict[str, Any]]:
    """Return the webhook configurations as they are installed in a cluster, before they are pointed at this machine."""
    return documents(REPOSITORY / "manifests/operator/webhooks.yaml")


def policies() -> list[dict[str, Any]]:
    """Return the admission policies that the API server judges by itself."""
    return documents(REPOSITORY / "manifests/operator/kueue-policy.yaml")


def _certificates(cluster: Cluster) -> str:
    """Put a serving certificate and its authority where the operator looks, under the names that it expects."""
    folder = cluster.folder / f"{ENGINE}-certs"
    folder.mkdir(exist_ok=True)
    pair = cluster.issue_serving(f"{ENGINE}-serving", ACCOUNT, (SERVICE, "localhost", "127.0.0.1", cluster.address))
    (folder / "tls.crt").write_bytes(pair.certificate.read_bytes())
    (folder / "tls.key").write_bytes(pair.key.read_bytes())
    (folder / "ca.crt").write_bytes(cluster.authority.read_bytes())
    return str(folder)
