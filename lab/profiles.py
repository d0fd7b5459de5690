"""Profiles: what `python -m lab up --profile NAME` brings up, and what it costs.

| profile    | clusters | what runs |
|------------|----------|-----------|
| control    | 1 | etcd, API server, controller-manager, scheduler, JobSet with its webhooks |
| node       | 1 | control, and a node with real pods |
| reference  | 1 | node, and the reference trainer with its torch runtime |
| trainplane | 1 | node, and Trainplane as an admin installs it: our image by our chart, with the torch runtime |
| scale      | 1 | control, and 1,000 simulated nodes |
| fleet      | 3 | hub and two workers, Kueue on each, MultiKueue connected |
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lab import chart, jobset, kwok, node, reference
from lab.cluster import Cluster
from lab.fleet import Fleet
from lab.images import reference as image
from lab.paths import REPOSITORY
from lab.webhooks import documents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def _trainplane(cluster: Cluster) -> None:
    _node(cluster)
    node.give(cluster, "operator")
    chart.make_namespace(cluster)
    chart.install(cluster)
    (runtime,) = documents(REPOSITORY / "runtimes/torch-distributed.yaml")
    cluster.apply(reference.with_image(runtime, image("torch")))


def _scale(cluster: Cluster) -> None:
    _control(cluster)
    kwok.install(cluster, nodes=SCALE_NODES)


_INSTALLERS: dict[str, Callable[[Cluster], None]] = {
    "control": _control,
    "node": _node,
    "reference": _reference,
    "trainplane": _trainplane,
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


@contextmanager
def node_with(install: Callable[[Cluster], object], name: str, **kubelet: Any) -> Iterator[Cluster]:
    """Bring up a cluster with a node and install something more; all of it ends with the context or the test run.

    `kubelet` overrides settings of the node's kubelet.
    """
    cluster = up_node(f"{name}-{os.getpid()}", install, owned=True, **kubelet)
    try:
        yield cluster
    finally:
        cluster.down()


def up_node(name: str, install: Callable[[Cluster], object], *, owned: bool, **kubelet: Any) -> Cluster:
    """Bring up a cluster with a node and install something more; on failure nothing of it stays."""
    cluster = Cluster.up(name, owned=owned)
    try:
        _control(cluster)
        node.install(cluster, **kubelet)
        install(cluster)
    except BaseException:
        cluster.down()
        raise
    return cluster
