"""A node that runs real pods: containerd, kubelet, CNI, DNS and kube-proxy, inside a cluster's sandbox."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml

from lab import addresses
from lab.engines import binary
from lab.images.containerd_root import SOCKET, config, link_to, wait_answering
from lab.processes import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from lab.cluster import Cluster

NAME = "node"
_DOMAIN = "cluster.local"
_READY_SECONDS = 120
_COREDNS_READY_PORT = 8181


def install(cluster: Cluster, **kubelet: Any) -> None:
    """Add the node and wait until it is Ready and its DNS answers; `kubelet` overrides settings of its kubelet."""
    cluster.sandbox.make_cgroups()
    _start_containerd(cluster)
    _write_network(cluster)
    _start_kubelet(cluster, kubelet)
    _start_proxy(cluster)
    _start_dns(cluster)
    wait_ready(cluster)


def load(cluster: Cluster, archive: Path, name: str) -> None:
    """Give the node an image out of an OCI archive, under the name that pods ask for."""
    base = name.rpartition(":")[0]
    command = [
        "ctr",
        "--address",
        SOCKET,
        "--namespace",
        "k8s.io",
        "images",
        "import",
        f"--base-name={base}",
        str(archive),
    ]
    cluster.sandbox.run(command)


def _start_containerd(cluster: Cluster) -> None:
    root = cluster.folder / "containerd"
    link_to(root)
    settings = cluster.folder / "containerd.toml"
    settings.write_text(config(root))
    cluster.start("containerd", ["containerd", "--config", str(settings)])
    wait_answering(cluster.sandbox)


def _write_network(cluster: Cluster) -> None:
    """Tell containerd how pods get addresses.

    Point-to-point links, not a bridge: between pods on one bridge the answer of a ClusterIP would come back unseen by
    the node's address translation, unless the kernel has br_netfilter.
    """
    ranges = [[{"subnet": addresses.pods(cluster.index)}]]
    ipam = {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
    plugins = [
        {"type": "ptp", "ipMasq": False, "ipam": ipam},
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    network = {"cniVersion": "0.4.0", "name": "lab", "plugins": plugins}
    script = "mkdir -p /etc/cni/net.d && cat > /etc/cni/net.d/10-lab.conflist"
    cluster.sandbox.run(["sh", "-euc", script], stdin=json.dumps(network))


def _start_kubelet(cluster: Cluster, others: dict[str, Any]) -> None:
    pki = cluster.folder / "pki"
    kubeconfig = cluster.user("kubelet", f"system:node:{NAME}", ("system:nodes",))
    serving = cluster.issue_serving("kubelet-serving", f"system:node:{NAME}", hosts=(cluster.address, NAME))
    settings: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": f"{pki}/ca.crt"}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(serving.certificate),
        "tlsPrivateKeyFile": str(serving.key),
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "clusterDNS": [cluster.address],
        "clusterDomain": _DOMAIN,
        "resolvConf": "",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cluster.sandbox.cgroup,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        # The machine's disk is not the lab's to guard: no pod is evicted because a build filled it.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "0%",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
        },
        "syncFrequency": "10s",
        "nodeStatusUpdateFrequency": "5s",
    }
    path = cluster.folder / "kubelet.yaml"
    path.write_text(yaml.safe_dump(settings | others))
    command = [
        binary("kubelet"),
        f"--config={path}",
        f"--kubeconfig={kubeconfig}",
        f"--node-ip={cluster.address}",
        f"--hostname-override={NAME}",
        f"--root-dir={cluster.folder}/kubelet",
    ]
    cluster.start("kubelet", command)


def _start_proxy(cluster: Cluster) -> None:
    kubeconfig = cluster.user("kube-proxy", "system:kube-proxy")
    settings = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "mode": "nftables",
        "clusterCIDR": addresses.pods(cluster.index),
        "hostnameOverride": NAME,
        # Limits of the machine's connection table are not a namespace's to set.
        "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    path = cluster.folder / "kube-proxy.yaml"
    path.write_text(yaml.safe_dump(settings))
    cluster.start("kube-proxy", [binary("kube-proxy"), f"--config={path}"])


def _start_dns(cluster: Cluster) -> None:
    path = cluster.folder / "Corefile"
    path.write_text(
        f""".:53 {{
    errors
    ready 127.0.0.1:{_COREDNS_READY_PORT}
    kubernetes {_DOMAIN} in-addr.arpa {{
        kubeconfig {cluster.kubeconfig}
    }}
}}
"""
    )
    cluster.start("coredns", [binary("coredns"), "-conf", str(path)])


def wait_ready(cluster: Cluster) -> None:
    """Wait until the node is Ready and its DNS answers."""

    def ready() -> bool:
        path = '-o=jsonpath={.status.conditions[?(@.type=="Ready")].status}'
        return cluster.kubectl("get", "node", NAME, path, check=False).stdout == "True"

    wait_for("the node", ready, seconds=_READY_SECONDS, log=cluster.log("kubelet"))
    cluster.wait_http("coredns", _COREDNS_READY_PORT, path="/ready")
