"""A node that runs real pods: containerd, kubelet, CNI, DNS and kube-proxy, inside a cluster's sandbox.

A second node has a containerd and a kubelet of its own, and shares the rest: both are in one network, and what is on
the machine's disk is on both, as a network file system would have it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from lab import addresses
from lab.controlplane import ENVIRONMENT
from lab.engines import binary
from lab.errors import LabError
from lab.images import trainplane
from lab.images.containerd_root import RUN, config, link_to, wait_answering
from lab.processes import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from lab.cluster import Cluster

NAME = "node"
SECOND = "node-2"
_DOMAIN = "cluster.local"
_READY_SECONDS = 120
_COREDNS_READY_PORT = 8181


@dataclass(frozen=True)
class _Place:
    """What two nodes of a cluster must not share."""

    name: str
    mark: str
    """Behind the names of engines, files and folders."""
    host: int
    """The last number of its address."""
    kubelet_port: int
    health_port: int
    pods: tuple[int, int]
    """The last numbers of its pods' addresses, from and to."""

    @property
    def run(self) -> str:
        """Where its containerd keeps what ends with it."""
        return RUN + self.mark

    @property
    def network(self) -> str:
        """Where its containerd reads how pods get addresses."""
        return f"/etc/cni/net{self.mark}.d"


_FIRST = _Place(NAME, "", host=1, kubelet_port=10250, health_port=10248, pods=(2, 149))
_SECOND = _Place(SECOND, "-2", host=2, kubelet_port=10350, health_port=10348, pods=(150, 254))
_PLACES = {place.name: place for place in (_FIRST, _SECOND)}


def install(cluster: Cluster, **kubelet: Any) -> None:
    """Add the node and wait until it is Ready and its DNS answers; `kubelet` overrides settings of its kubelet."""
    _start(cluster, _FIRST, kubelet)
    _start_proxy(cluster)
    _start_dns(cluster)
    wait_ready(cluster)
    cluster.wait_http("coredns", _COREDNS_READY_PORT, path="/ready")


def install_second(cluster: Cluster, **kubelet: Any) -> None:
    """Add a second node to a cluster that has one, and wait until it is Ready."""
    cluster.sandbox.run(["ip", "addr", "add", f"{addresses.node(cluster.index, _SECOND.host)}/24", "dev", "lab0"])
    _start(cluster, _SECOND, kubelet)
    wait_ready(cluster, SECOND)


def _start(cluster: Cluster, place: _Place, kubelet: dict[str, Any]) -> None:
    cluster.sandbox.make_cgroups(place.name)
    _start_containerd(cluster, place)
    _write_network(cluster, place)
    _start_kubelet(cluster, place, kubelet)


def load(cluster: Cluster, archive: Path, name: str, machine: str = NAME) -> None:
    """Give a node an image out of an OCI archive, under the name that pods ask for."""
    socket = f"{_PLACES[machine].run}/containerd.sock"
    client = ["ctr", "--address", socket, "--namespace", "k8s.io"]
    cluster.sandbox.run([*client, "images", "import", f"--base-name={name.rpartition(':')[0]}", str(archive)])


def give(cluster: Cluster, program: str, *machines: str) -> str:
    """Give nodes our image of a program, the first node alone if none is named; return its name for pods."""
    archive = trainplane.archive(program)
    if not archive.exists():
        message = f"our image of {program} is not built for this checkout: run `make image`"
        raise LabError(message)
    for machine in machines or (NAME,):
        load(cluster, archive, trainplane.name(program), machine)
    return trainplane.name(program)


def _start_containerd(cluster: Cluster, place: _Place) -> None:
    root = cluster.folder / f"containerd{place.mark}"
    link_to(root)
    settings = cluster.folder / f"containerd{place.mark}.toml"
    settings.write_text(config(root, run=place.run, network=place.network))
    cluster.start(f"containerd{place.mark}", ["containerd", "--config", str(settings)], ENVIRONMENT)
    wait_answering(cluster.sandbox, place.run)


def _write_network(cluster: Cluster, place: _Place) -> None:
    """Tell containerd how pods get addresses.

    Point-to-point links, not a bridge: between pods on one bridge the answer of a ClusterIP would come back unseen by
    the node's address translation, unless the kernel has br_netfilter.
    """
    first, last = (addresses.pod(cluster.index, number) for number in place.pods)
    ranges = [[{"subnet": addresses.pods(cluster.index), "rangeStart": first, "rangeEnd": last}]]
    ipam = {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
    plugins = [
        {"type": "ptp", "ipMasq": False, "ipam": ipam},
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    network = {"cniVersion": "0.4.0", "name": f"lab{place.mark}", "plugins": plugins}
    script = f"mkdir -p {place.network} && cat > {place.network}/10-lab.conflist"
    cluster.sandbox.run(["sh", "-euc", script], stdin=json.dumps(network))


def _start_kubelet(cluster: Cluster, place: _Place, others: dict[str, Any]) -> None:
    pki, address = cluster.folder / "pki", addresses.node(cluster.index, place.host)
    engine, user = f"kubelet{place.mark}", f"system:node:{place.name}"
    kubeconfig = cluster.user(engine, user, ("system:nodes",))
    serving = cluster.issue_serving(f"kubelet-serving{place.mark}", user, hosts=(address, place.name))
    settings: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": f"{pki}/ca.crt"}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(serving.certificate),
        "tlsPrivateKeyFile": str(serving.key),
        "port": place.kubelet_port,
        "healthzPort": place.health_port,
        "podLogsDir": f"/var/log/pods{place.mark}",
        "containerRuntimeEndpoint": f"unix://{place.run}/containerd.sock",
        "clusterDNS": [cluster.address],
        "clusterDomain": _DOMAIN,
        "resolvConf": "",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"{cluster.sandbox.cgroup}/{place.name}",
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
    path = cluster.folder / f"{engine}.yaml"
    path.write_text(yaml.safe_dump(settings | others))
    command = [
        binary("kubelet"),
        f"--config={path}",
        f"--kubeconfig={kubeconfig}",
        f"--node-ip={address}",
        f"--hostname-override={place.name}",
        f"--root-dir={cluster.folder}/{engine}",
    ]
    cluster.start(engine, command, ENVIRONMENT)


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


def wait_ready(cluster: Cluster, name: str = NAME) -> None:
    """Wait until a node is Ready."""

    def ready() -> bool:
        path = '-o=jsonpath={.status.conditions[?(@.type=="Ready")].status}'
        return cluster.kubectl("get", "node", name, path, check=False).stdout == "True"

    wait_for(f"node {name}", ready, seconds=_READY_SECONDS, log=cluster.log("kubelet"))
