"""What pods said to whom, by the kernel's table of connections, judged by NetworkPolicies.

The lab's network has nobody who enforces a policy, so what was really spoken is compared with what it would let pass.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster

Tree = dict[str, Any]

_FLOW = re.compile(
    r"^(?P<protocol>tcp|udp) .*?src=(?P<source>\S+) dst=\S+ .*?src=(?P<peer>\S+) dst=\S+ sport=(?P<port>\d+)"
)


@dataclass(frozen=True)
class Flow:
    """A connection: who began it, and where it came to after address translation."""

    protocol: str
    source: str
    target: str
    port: int


def flows(cluster: Cluster) -> set[Flow]:
    """Return the connections that a cluster's node knows of now."""
    listed = cluster.sandbox.run(["conntrack", "-L"]).stdout
    found = (_FLOW.match(line) for line in listed.splitlines())
    return {Flow(one["protocol"].upper(), one["source"], one["peer"], int(one["port"])) for one in found if one}


def node_addresses(cluster: Cluster) -> set[str]:
    """Return the addresses by which a cluster's node speaks: to its pods, by their gateway's."""
    listed = cluster.sandbox.run(["ip", "-4", "-oneline", "address"]).stdout
    return set(re.findall(r"inet (\S+?)/", listed))


def forbidden(spoken: set[Flow], policies: list[Tree], pods: list[Tree], nodes: set[str]) -> Iterator[Flow]:
    """Return what the policies of a namespace would not have let through; a node may speak to its pods."""
    labels = {pod["status"]["podIP"]: pod["metadata"]["labels"] for pod in pods}
    for flow in spoken:
        for address, direction, peer in ((flow.source, "egress", flow.target), (flow.target, "ingress", flow.source)):
            chosen = [
                policy["spec"] for policy in policies if _selects(policy["spec"]["podSelector"], labels.get(address))
            ]
            rules = [rule for spec in chosen for rule in spec.get(direction, ())]
            is_probe = direction == "ingress" and peer in nodes
            if chosen and not is_probe and not any(_lets(rule, flow, labels.get(peer)) for rule in rules):
                yield flow


def _lets(rule: Tree, flow: Flow, peer: dict[str, str] | None) -> bool:
    peers = rule.get("to", rule.get("from"))
    if peers and not any(_selects(one["podSelector"], peer) for one in peers):
        return False
    return any((one["protocol"], one["port"]) == (flow.protocol, flow.port) for one in rule["ports"])


def _selects(selector: Tree, labels: dict[str, str] | None) -> bool:
    return labels is not None and selector["matchLabels"].items() <= labels.items()
