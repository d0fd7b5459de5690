"""How the parts of a control plane are started, from what lies in a cluster's folder: certificates and kubeconfigs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import yaml

from lab import addresses, etcd
from lab.engines import binary

if TYPE_CHECKING:
    from pathlib import Path


ENVIRONMENT: Final = {"GOGC": "400", "GOMEMLIMIT": "6GiB"}
"""For engines that everything else waits for: garbage is collected a quarter as often. Measured beside CI, the start of
a cluster with a node takes 22 s of processor instead of 28, and its API server 1.1 GiB instead of 0.6. Engines that
ours is compared with are left as they are shipped."""


def apiserver(folder: Path, port: int, index: int) -> list[str]:
    """Return how kube-apiserver is started, at a port and with the addresses of a cluster's index."""
    pki = folder / "pki"
    return [
        binary("kube-apiserver"),
        f"--etcd-servers={etcd.CLIENT}",
        f"--secure-port={port}",
        f"--advertise-address={addresses.node(index)}",
        f"--service-cluster-ip-range={addresses.services(index)}",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        f"--client-ca-file={pki}/ca.crt",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={pki}/service-account.pub",
        f"--service-account-signing-key-file={pki}/service-account.key",
        f"--kubelet-client-certificate={pki}/apiserver-kubelet.crt",
        f"--kubelet-client-key={pki}/apiserver-kubelet.key",
        f"--kubelet-certificate-authority={pki}/ca.crt",
        # Node names do not resolve here; without this, logs fail.
        "--kubelet-preferred-address-types=InternalIP",
        # The aggregation layer: an aggregated API trusts these headers from this certificate.
        f"--requestheader-client-ca-file={pki}/ca.crt",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki}/front-proxy.crt",
        f"--proxy-client-key-file={pki}/front-proxy.key",
        "--enable-aggregator-routing=true",
        "--allow-privileged=true",
        "--profiling=false",
    ]


def controller_manager(folder: Path) -> list[str]:
    """Return how kube-controller-manager is started."""
    pki = folder / "pki"
    kubeconfig = folder / "controller-manager.kubeconfig"
    return [
        binary("kube-controller-manager"),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--root-ca-file={pki}/ca.crt",
        f"--service-account-private-key-file={pki}/service-account.key",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        # On two busy cores heartbeats come late: a node is lost after minutes here, not after 50 s.
        "--node-monitor-grace-period=400s",
        # A lab has one node and many tests: the shipped limit of 20 requests a second would be what they measure.
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]


def scheduler(folder: Path) -> list[str]:
    """Return how kube-scheduler is started, with its configuration written beside its kubeconfig."""
    kubeconfig = folder / "scheduler.kubeconfig"
    config = folder / "scheduler.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 500, "burst": 1000},
                "leaderElection": {"leaderElect": False},
            }
        )
    )
    access = [f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}"]
    return [binary("kube-scheduler"), f"--config={config}", *access]
