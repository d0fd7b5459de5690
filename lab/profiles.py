"""Profiles: what `python -m lab up --profile NAME` brings up, and what it costs.

| profile   | clusters | what runs |
|-----------|----------|-----------|
| control   | 1 | etcd, API server, controller-manager, scheduler, JobSet with its webhooks |
| node      | 1 | control, and a node with real pods |
| reference | 1 | node, and the reference trainer with its torch runtime |
| scale     | 1 | control, and 1,000 simulated nodes |
| fleet     | 3 | hub and two workers, Kueue on each, MultiKueue connected |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab import jobset, kwok, node, reference
from lab.cluster import Cluster
from lab.fleet import Fleet
from lab.images import reference as image

if TYPE_CHECKING:
    from collections.abc import Callable

SCALE_NODES = 1000


def _control(cluster: Cluster) -> None:
    jobset.install(cluster)


def _node(cluster: Cluster) -> None:
    _control(cluster)
    node.install(cluster)


def _reference(cluster: Cluster) -> None:
    _node(cluster)
    reference.install(cluster)
    cluster.apply(reference.runtime("torch-distributed", image("torch")))


def _scale(cluster: Cluster) -> None:
    _control(cluster)
    kwok.install(cluster, nodes=SCALE_NODES)


_INSTALLERS: dict[str, Callable[[Cluster], None]] = {
    "control": _control,
    "node": _node,
    "reference": _reference,
    "scale": _scale,
}
PROFILES = (*_INSTALLERS, "fleet")


def up(profile: str, name: str, *, owned: bool = False) -> tuple[Cluster, ...]:
    """Bring a profile up; on failure nothing of it stays."""
    if profile == "fleet":
        return Fleet.up(name="" if name == "lab" else name, owned=owned).clusters
    cluster = Cluster.up(name, owned=owned)
    try:
        _INSTALLERS[profile](cluster)
    except BaseException:
        cluster.down()
        raise
    return (cluster,)
