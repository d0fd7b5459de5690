"""A side of the comparison: a cluster with JobSet, simulated nodes and one of the two operators; Kueue when asked for.

| side | operator |
|---|---|
| `ours` | as we ship it, under its service account and roles |
| `reference` | the Go controller v2.3.0 as administrator, the limit of its client lifted |
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from benchmarks.life import requests
from lab import audit, jobset, kueue, kwok, reference, trainplane
from lab.cluster import Cluster
from lab.processes import wait_for
from tests.fleet import objects

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SideName = Literal["ours", "reference"]
NODES: Final = 20
"""Simulated nodes of 32 CPUs: room for 640 pods at a time."""
PODS: Final = 2
"""Pods of each job."""
RUNTIME: Final = "life"
LASTS: Final = "1s"
FRAMEWORKS: Final = ("trainer.kubeflow.org/trainjob",)
PLENTY: Final = {"cpu": "100000", "memory": "100000Gi"}
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


def runtime() -> dict[str, Any]:
    """Return the runtime of all jobs, in words that both operators know."""
    tree = objects.runtime(RUNTIME, lasts=LASTS)
    tree["spec"]["mlPolicy"] = {"numNodes": 1, "torch": {}}
    return tree


@dataclass(frozen=True)
class Operator:
    """How an operator comes to a cluster, and by which names it is known there."""

    install_crds: Callable[[Cluster], None]
    install: Callable[[Cluster], None]
    engine: str
    user: str
    """Who it is in the audit log (`requests.who`)."""


OPERATORS: Final[dict[SideName, Operator]] = {
    "ours": Operator(trainplane.install_crds, _install_ours, trainplane.ENGINE, trainplane.ACCOUNT),
    "reference": Operator(reference.install_crds, _install_reference, "reference", "trainer-controller-manager"),
}


@dataclass(frozen=True)
class Side:
    """A cluster with one of the operators."""

    name: SideName
    cluster: Cluster

    @classmethod
    def up(cls, name: SideName) -> Side:
        """Start the cluster without Kueue; it ends with this process."""
        cluster = Cluster.up(f"life-{name}-{os.getpid()}", owned=True, everyone=True)
        try:
            side = cls(name, cluster)
            side._install()
        except BaseException:
            cluster.down()
            raise
        return side

    def _install(self) -> None:
        """Install all but Kueue, and wait until the cluster has taken it in.

        The garbage collector looks for new kinds twice a minute, and asks the API server about each owner of a kind
        that it does not know yet: it is started anew, for in life it knows them.
        """
        cluster, log = self.cluster, requests.Log(self.log)
        jobset.install_crd(cluster)
        self.operator.install_crds(cluster)
        cluster.kill(_CONTROLLERS)
        cluster.revive(_CONTROLLERS)
        jobset.install(cluster)
        kwok.install(cluster, nodes=NODES)
        self.operator.install(cluster)
        cluster.apply(runtime())
        known: set[str] = set()

        def knows_owners() -> bool:
            known.update(requests.follows(log.more(), _CONTROLLERS))
            return known >= {"trainjobs", "jobsets"}

        wait_for("the garbage collector", knows_owners, seconds=90, log=cluster.log(_CONTROLLERS))

    def wait_quiet(self) -> None:
        """Wait until the API server has digested what was installed: new kinds keep it busy for seconds."""
        server = self.cluster.engines()["kube-apiserver"].process

        def quiet() -> bool:
            before = server.cpu_seconds()
            time.sleep(1)
            return server.cpu_seconds() - before < _BUSY

        wait_for("the API server to be quiet", quiet, seconds=60)

    @property
    def operator(self) -> Operator:
        """The operator here."""
        return OPERATORS[self.name]

    @property
    def log(self) -> Path:
        """The API server's audit log."""
        return audit.path_of(self.cluster.folder)

    def add_kueue(self) -> None:
        """Install Kueue."""
        kueue.install(self.cluster, frameworks=FRAMEWORKS)
        self.cluster.apply(objects.flavor())

    def prepare(self, namespace: str, quota: dict[str, str] | None) -> dict[str, Any]:
        """Make a namespace, and a queue in it when there is a `quota`; return a TrainJob for it, without a name.

        Waits until a job would be accepted: Kueue and the operator must have seen the runtime.
        """
        self.cluster.apply(objects.namespace(namespace))
        if quota is not None:
            self.cluster.apply(objects.cluster_queue(namespace, quota), objects.local_queue(namespace))
            wait_for("the queue", lambda: self._is_active(namespace), seconds=60, log=self.cluster.log("kueue"))
        queue = None if quota is None else objects.QUEUE
        job = objects.train_job("probe", namespace, runtime=RUNTIME, nodes=PODS, queue=queue)
        probe = json.dumps(job)

        def accepted() -> bool:
            words = ("create", "--dry-run=server", "--filename=-")
            return self.cluster.kubectl(*words, stdin=probe, check=False).code == 0

        wait_for("a job to be accepted", accepted, seconds=60, log=self.cluster.log(self.operator.engine))
        return job

    def _is_active(self, namespace: str) -> bool:
        queue = self.cluster.get("localqueue", objects.QUEUE, "-n", namespace)
        conditions = queue.get("status", {}).get("conditions", [])
        return any(one["type"] == "Active" and one["status"] == "True" for one in conditions)
