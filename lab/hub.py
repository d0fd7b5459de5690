"""The hub server on a cluster: the process beside the API server, and what makes its API part of the cluster's.

The lab starts it as an admin would, by `python -m trainplane.hub`, under its own service account and the roles that we
ship; it imports nothing of it. The aggregation layer
finds a server outside of pods by a Service without a selector and an EndpointSlice, whose address must not be loopback.
"""

from __future__ import annotations

import base64
import sys
from typing import TYPE_CHECKING, Any

from lab import accounts
from lab.paths import REPOSITORY
from lab.processes import wait_for
from lab.webhooks import documents

if TYPE_CHECKING:
    from pathlib import Path

    from lab.cluster import Cluster

ENGINE = "hub"
NAMESPACE = "trainplane-hub"
ACCOUNT = "trainplane-hub"
KUEUE_NAMESPACE = "kueue-system"
SERVICE = "trainplane-hub"
GROUP = "hub.trainplane.dev"
API_SERVICE = f"v1alpha1.{GROUP}"
PORT = 8450
FRONT = "hub-front"
FRONT_ACCOUNT = "trainplane-hub-front"
_READY_SECONDS = 90


def install(cluster: Cluster, *flags: str, older: tuple[str, ...] = ()) -> None:
    """Start the hub server, make its API part of the cluster's and wait until it answers through the API server.

    `older` are the plurals of older kinds of jobs that it looks after, with the rights that this takes.
    """
    for namespace in (NAMESPACE, KUEUE_NAMESPACE):
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    cluster.apply(*documents(REPOSITORY / "manifests/hub/rbac.yaml"))
    if older:
        cluster.apply(*documents(REPOSITORY / "manifests/hub/legacy-rbac.yaml"))
    command = [
        *(sys.executable, "-m", "trainplane.hub"),
        f"--kubeconfig={accounts.kubeconfig(cluster, NAMESPACE, ACCOUNT)}",
        f"--data={data(cluster)}",
        f"--namespace={NAMESPACE}",
        f"--tls-cert-dir={_certificates(cluster)}",
        f"--listen={cluster.address}:{PORT}",
        f"--legacy-kinds={','.join(older)}",
        *flags,
    ]
    cluster.start(ENGINE, command, {"PYTHONPATH": str(REPOSITORY / "src")})
    cluster.apply(*_objects(cluster))
    wait_ready(cluster)


def install_fronts(cluster: Cluster, count: int = 2) -> list[str]:
    """Put fronts before a hub server that was installed with `front_flags`; return their names among the engines."""
    token = cluster.kubectl("create", "token", FRONT_ACCOUNT, "-n", NAMESPACE, f"--audience={SERVICE}").stdout
    file = cluster.folder / f"{FRONT}.token"
    file.write_text(token)
    kubeconfig = accounts.kubeconfig(cluster, NAMESPACE, FRONT_ACCOUNT)
    names = [f"{FRONT}-{number}" for number in range(1, count + 1)]
    for number, name in enumerate(names, start=1):
        command = [
            *(sys.executable, "-m", "trainplane.hub.front"),
            f"--kubeconfig={kubeconfig}",
            f"--namespace={NAMESPACE}",
            f"--owner=https://{cluster.address}:{PORT}",
            f"--owner-ca={cluster.authority}",
            f"--token-file={file}",
            f"--tls-cert-dir={_certificates(cluster)}",
            f"--listen={cluster.address}:{PORT + number}",
        ]
        cluster.start(name, command, {"PYTHONPATH": str(REPOSITORY / "src")})
        cluster.wait_http(name, PORT + number, tls=cluster.address)
    cluster.apply(*(_endpoints(cluster, f"{SERVICE}-{number}", PORT + number) for number in range(1, count + 1)))
    cluster.kubectl("delete", "endpointslice", SERVICE, "-n", NAMESPACE)
    return names


def front_flags() -> tuple[str, ...]:
    """Return the flags of a hub server that has fronts before it."""
    return (f"--front-account=system:serviceaccount:{NAMESPACE}:{FRONT_ACCOUNT}",)


def is_available(cluster: Cluster) -> bool:
    """Tell whether the API server takes the hub's API for available."""
    conditions = cluster.get("apiservice", API_SERVICE).get("status", {}).get("conditions", [])
    return any(c["type"] == "Available" and c["status"] == "True" for c in conditions)


def data(cluster: Cluster) -> Path:
    """Return the folder in which the server keeps logs."""
    folder = cluster.folder / f"{ENGINE}-data"
    folder.mkdir(exist_ok=True)
    return folder


def wait_ready(cluster: Cluster) -> None:
    """Wait until the server answers through the API server, after a start or a `cluster.revive`."""
    cluster.wait_http(ENGINE, PORT, tls=cluster.address)
    wait_for("the hub's APIService", lambda: is_available(cluster), seconds=_READY_SECONDS, log=cluster.log(ENGINE))


def _objects(cluster: Cluster) -> list[dict[str, Any]]:
    meta = {"name": SERVICE, "namespace": NAMESPACE}
    port = {"name": "https", "port": PORT, "protocol": "TCP"}
    bundle = base64.b64encode(cluster.authority.read_bytes()).decode()
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {"ports": [{**port, "port": 443, "targetPort": PORT}]},
        },
        _endpoints(cluster, SERVICE, PORT),
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": API_SERVICE},
            "spec": {
                "group": GROUP,
                "version": "v1alpha1",
                "service": {"name": SERVICE, "namespace": NAMESPACE},
                "caBundle": bundle,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
            },
        },
    ]


def _endpoints(cluster: Cluster, name: str, port: int) -> dict[str, Any]:
    """Return where the API server finds one server of the Service."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": SERVICE}},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        "endpoints": [{"addresses": [cluster.address], "conditions": {"ready": True}}],
    }


def _certificates(cluster: Cluster) -> Path:
    """Make a serving certificate for the Service, under the names that the server looks for."""
    folder = cluster.folder / f"{ENGINE}-certs"
    folder.mkdir(exist_ok=True)
    hosts = (f"{SERVICE}.{NAMESPACE}.svc", cluster.address)
    pair = cluster.issue_serving(f"{ENGINE}-serving", SERVICE, hosts)
    (folder / "tls.crt").write_bytes(pair.certificate.read_bytes())
    (folder / "tls.key").write_bytes(pair.key.read_bytes())
    return folder
