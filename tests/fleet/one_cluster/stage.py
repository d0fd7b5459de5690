"""The one cluster of these tests: JobSet, Kueue, our operator, and simulated nodes in three pools.

| pool | nodes | what for |
|---|---|---|
| `plain` | 2 | where pods go unless something sends them elsewhere; GPUs |
| `spot` | 2 | tainted: only a flavor's toleration leads there; GPUs |
| `rack` | 8 | two blocks of four; one `SLOT` each, so that rank and place can be compared |
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lab import jobset, kueue, kwok, trainplane
from lab.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterable

POOL = "lab.trainplane.dev/pool"
BLOCK = "lab.trainplane.dev/block"
HOST = "kubernetes.io/hostname"
SLOT = "lab.trainplane.dev/slot"
GPU = "nvidia.com/gpu"
FRAMEWORKS = ("batch/job", "jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob")
RACK = 8
BLOCKS = 2


def bring_up(name: str, *, owned: bool, settings: dict[str, Any] | None = None) -> Cluster:
    """Start the cluster and wait until everything in it is ready; `settings` are added to the operator's."""
    cluster = Cluster.up(name, owned=owned)
    try:
        jobset.install(cluster)
        trainplane.install_crds(cluster)
        _add_nodes(cluster)
        kueue.install(cluster, frameworks=FRAMEWORKS)
        _install_operator(cluster, settings)
    except BaseException:
        cluster.down()
        raise
    return cluster


def _install_operator(cluster: Cluster, settings: dict[str, Any] | None) -> None:
    """Install our operator with webhooks that are called before Kueue's, as in a real cluster.

    Mutating webhooks run in the order of their configurations' names: `defaulter.trainer.kubeflow.org`, then
    `kueue-mutating-webhook-configuration`. The lab's usual prefix would turn that round.
    """
    trainplane.install(cluster, with_crds=False, prefix="a", settings=settings)


def _add_nodes(cluster: Cluster) -> None:
    gpus = {GPU: "8"}
    kwok.install(cluster, nodes=2, capacity=gpus, prefix="plain")
    kwok.install(cluster, nodes=2, capacity=gpus, prefix="spot", tainted=True)
    kwok.install(cluster, nodes=RACK, capacity={SLOT: "1"}, prefix="rack")
    _label(cluster, ((f"{pool}-{number}", {POOL: pool}) for pool in ("plain", "spot") for number in range(2)))
    blocks = ((f"rack-{number}", f"block-{number * BLOCKS // RACK}") for number in range(RACK))
    _label(cluster, ((node, {POOL: "rack", BLOCK: block}) for node, block in blocks))


def _label(cluster: Cluster, nodes: Iterable[tuple[str, dict[str, str]]]) -> None:
    with cluster.connection() as connection:
        for name, labels in nodes:
            body = json.dumps({"metadata": {"labels": labels}})
            connection.send("PATCH", f"/api/v1/nodes/{name}", body, "application/merge-patch+json")
