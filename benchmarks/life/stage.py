"""A side of the comparison: one of the two operators on a cluster of its own, or on a hub with two workers.

| side | operator |
|---|---|
| `ours` | as we ship it, under its service account and roles |
| `reference` | the Go controller v2.3.0 as administrator, the limit of its client lifted |

JobSet and simulated nodes are in the path; Kueue when asked for, and MultiKueue on a hub.
"""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from benchmarks.life import requests
from lab import audit, jobset, kueue, kwok, reference, trainplane
from lab.cluster import Cluster
from lab.fleet import CHECK, Fleet
from lab.processes import wait_for
from tests.fleet import objects

if TYPE_CHECKING:
    from collections.abc import Callable

SideName = Literal["ours", "reference"]
NODES: Final = 20
"""Simulated nodes of 32 CPUs: room for 640 pods at a time."""
PODS: Final = 2
"""Pods of each job."""
RUNTIME: Final = "life"
LASTS: Final = "1s"
FRAMEWORKS: Final = ("trainer.kubeflow.org/trainjob",)
PLENTY: Final = {"cpu": "100000", "memory": "100000Gi"}
"""A quota for which nobody waits."""
_LIFTED_QPS: Final = 5000
_CONTROLLERS: Final = "kube-controller-manager"
_BUSY: Final = 0.1
"""Share of a core below which an API server has nothing to do."""
_FIRST: Final = "a"
"""The prefix of webhooks that are called before Kueue's, as their names make them in a real cluster."""


def _install_ours(cluster: Cluster) -> None:
    trainplane.install(cluster, with_crds=False, prefix=_FIRST)


def _install_reference(cluster: Cluster) -> None:
    reference.install(cluster, qps=_LIFTED_QPS, with_crds=False, prefix=_FIRST)


def runtime(name: str = RUNTIME, lasts: str = LASTS) -> dict[str, Any]:
    """Return a runtime in words that both operators know."""
    tree = objects.runtime(name, lasts=lasts)
    tree["spec"]["mlPolicy"] = {"numNodes": 1, "torch": {}}
    return tree


@dataclass(frozen=True)
class Operator:
    """How an operator comes to a cluster, and by which names it is known there."""

    install_crds: Callable[[Cluster], None]
    install: Callable[[Cluster], None]
    wait_ready: Callable[[Cluster], None]
    engine: str
    user: str
    """Who it is in the audit log (`requests.who`)."""


OPERATORS: Final[dict[SideName, Operator]] = {
    "ours": Operator(
        trainplane.install_crds, _install_ours, trainplane.wait_ready, trainplane.ENGINE, trainplane.ACCOUNT
    ),
    "reference": Operator(
        reference.install_crds, _install_reference, reference.wait_ready, "reference", "trainer-controller-manager"
    ),
}


@dataclass(frozen=True)
class Side:
    """An operator on its clusters; jobs are sent to the first of them."""

    name: SideName
    clusters: tuple[Cluster, ...]

    @classmethod
    def up(cls, *names: SideName) -> list[Side]:
        """Start sides of one cluster each, without Kueue; they end with this process.

        Clusters end with the very thread that starts them, so only what is installed on them is so side by side.
        """
        sides: list[Side] = []
        try:
            for name in names:
                cluster = Cluster.up(f"life-{name}-{os.getpid()}", owned=True, everyone=True)
                sides.append(cls(name, (cluster,)))
            with ThreadPoolExecutor(len(sides)) as pool:
                list(pool.map(Side._install_all, sides))
        except BaseException:
            for side in sides:
                side.down()
            raise
        return sides

    def _install_all(self) -> None:
        jobset.install_crd(self.cluster)
        self._install(self.cluster)
        jobset.install(self.cluster)
        self._equip(self.cluster)
        self._wait_known(self.cluster)

    @classmethod
    def up_hub(cls, name: SideName) -> Side:
        """Start a hub and two workers, joined by MultiKueue; they end with this process."""
        side = cls(name, ())
        fleet = Fleet.up(
            name=f"life-{name}-{os.getpid()}",
            owned=True,
            everyone=True,
            frameworks=FRAMEWORKS,
            prepare=side._install,
            equip=side._equip,
        )
        side = cls(name, fleet.clusters)
        try:
            for cluster in side.clusters:
                side._wait_known(cluster)
                cluster.apply(objects.flavor())
        except BaseException:
            side.down()
            raise
        return side

    def down(self) -> None:
        """End all of it."""
        for cluster in self.clusters:
            cluster.down()

    @property
    def operator(self) -> Operator:
        """The operator here."""
        return OPERATORS[self.name]

    @property
    def cluster(self) -> Cluster:
        """Where jobs are sent to."""
        return self.clusters[0]

    def logs(self) -> list[requests.Log]:
        """Return the API servers' audit logs from now on."""
        return [requests.Log(audit.path_of(cluster.folder)) for cluster in self.clusters]

    def _install(self, cluster: Cluster) -> None:
        """Install the operator beside JobSet's CRD.

        The garbage collector looks for new kinds twice a minute, and asks the API server about each owner of a kind
        that it does not know yet: it is started anew, for in life it knows them.
        """
        self.operator.install_crds(cluster)
        cluster.kill(_CONTROLLERS)
        cluster.revive(_CONTROLLERS)
        self.operator.install(cluster)
        cluster.apply(runtime())

    @staticmethod
    def _equip(cluster: Cluster) -> None:
        kwok.install(cluster, nodes=NODES)

    @staticmethod
    def _wait_known(cluster: Cluster) -> None:
        """Wait until the garbage collector knows the owners of what jobs bring with them."""

        def known() -> bool:
            return requests.follows(cluster.audit(), _CONTROLLERS) >= {"trainjobs", "jobsets"}

        wait_for("the garbage collector", known, seconds=90, log=cluster.log(_CONTROLLERS))

    def wait_quiet(self, seconds: float = 60) -> None:
        """Wait until API servers have nothing to do: new kinds keep them busy for seconds, and so do many jobs."""
        servers = [cluster.engines()["kube-apiserver"].process for cluster in self.clusters]

        def spent() -> float:
            return sum(server.cpu_seconds() for server in servers)

        def quiet() -> bool:
            before = spent()
            time.sleep(1)
            return spent() - before < _BUSY * len(servers)

        wait_for("API servers to be quiet", quiet, seconds=seconds)

    def add_kueue(self, workers: int | None = None) -> None:
        """Install Kueue on the one cluster; `workers` is how many TrainJobs it looks at at once, if not one."""
        kinds = {f"TrainJob.{trainplane.GROUP}": workers}
        many = {"controller": {"groupKindConcurrency": kinds}} if workers else {}
        kueue.install(self.cluster, frameworks=FRAMEWORKS, **many)
        self.cluster.apply(objects.flavor())

    def prepare(self, namespace: str, quota: dict[str, str] | None, runtime: str = RUNTIME) -> dict[str, Any]:
        """Make a namespace, and a queue in it when there is a `quota`; return a TrainJob for it, without a name.

        Waits until a job would be accepted: Kueue and the operator must have seen the runtime.
        """
        for cluster in self.clusters:
            cluster.apply(objects.namespace(namespace))
            if quota is not None:
                checks = (CHECK,) if cluster is self.cluster and len(self.clusters) > 1 else ()
                cluster.apply(objects.cluster_queue(namespace, quota, checks=checks), objects.local_queue(namespace))
        if quota is not None:
            for cluster in self.clusters:
                _wait_active(cluster, namespace)
        queue = None if quota is None else objects.QUEUE
        job = objects.train_job("probe", namespace, runtime=runtime, nodes=PODS, queue=queue)
        probe = json.dumps(job)

        def accepted() -> bool:
            words = ("create", "--dry-run=server", "--filename=-")
            return self.cluster.kubectl(*words, stdin=probe, check=False).code == 0

        wait_for("a job to be accepted", accepted, seconds=60, log=self.cluster.log(self.operator.engine))
        return job


def _wait_active(cluster: Cluster, namespace: str) -> None:
    def active() -> bool:
        queue = cluster.get("localqueue", objects.QUEUE, "-n", namespace)
        conditions = queue.get("status", {}).get("conditions", [])
        return any(one["type"] == "Active" and one["status"] == "True" for one in conditions)

    wait_for("the queue", active, seconds=60, log=cluster.log("kueue"))
