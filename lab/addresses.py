"""Addresses of a cluster. All of them exist only inside network namespaces that the lab made.

Cluster N has its node at 10.77.N.1 (a second at 10.77.N.2), its pods in 10.78.N.0/24 and its services in
10.79.N.0/24; the link from a hub to cluster N is 10.76.N.0/30. Clusters of a fleet therefore never collide, and a route
tells them apart.
"""

from __future__ import annotations

from lab.errors import LabError

_MOST = 250


def free_index(taken: set[int]) -> int:
    """Return the lowest number that no running cluster has."""
    for index in range(1, _MOST):
        if index not in taken:
            return index
    message = f"{_MOST} clusters are up: end some with `python -m lab down`"
    raise LabError(message)


def node(index: int, host: int = 1) -> str:
    """Return the address of a node; that of the first is the API server's and the DNS's, too."""
    return f"10.77.{index}.{host}"


def pods(index: int) -> str:
    """Return the network of the pods."""
    return f"10.78.{index}.0/24"


def pod(index: int, number: int) -> str:
    """Return an address of that network."""
    return f"10.78.{index}.{number}"


def services(index: int) -> str:
    """Return the network of the services."""
    return f"10.79.{index}.0/24"


def first_service(index: int) -> str:
    """Return the address of the service `kubernetes`."""
    return f"10.79.{index}.1"


def script(index: int) -> str:
    """Return the shell script that sets up the node's address inside the cluster's network.

    A bridge, because this kernel has no dummy links; the default route makes service addresses routable before
    kube-proxy turns them into pods' addresses, and leads nowhere.
    """
    return f"""
ip link add lab0 type bridge
ip addr add {node(index)}/24 dev lab0
ip link set lab0 up
ip route add default dev lab0 src {node(index)}
sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.route_localnet=1
"""


def link(index: int) -> tuple[str, str]:
    """Return the two ends of the link between a hub and cluster N: the hub's, then the cluster's."""
    return f"10.76.{index}.1", f"10.76.{index}.2"
