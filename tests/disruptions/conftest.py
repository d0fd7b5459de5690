"""A cluster of two nodes with Kueue, Trainplane, and its shipped runtimes; and one with Kubeflow Trainer 2.3."""

from __future__ import annotations

import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from lab import kueue, node, profiles, reference, trainplane
from lab.images import reference as image
from lab.paths import REPOSITORY
from lab.webhooks import documents
from tests.disruptions import trainer
from tests.disruptions.histories import MPI, SHIPPED, Histories, begin, compare
from tests.disruptions.job import Job, MakeJob

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster

FRAMEWORKS = ("batch/job", "jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob")
THREADS = 64


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Return a cluster with Trainplane, Kueue, and the shipped runtimes, those of MPI with the lab's image."""
    (cluster,) = profiles.up("node", f"disruptions-{os.getpid()}", owned=True)
    try:
        node.install_second(cluster)
        trainplane.install_crds(cluster)
        kueue.install(cluster, frameworks=FRAMEWORKS)
        trainplane.install(cluster, with_crds=False, prefix="a")
        shipped = (one for name in (*SHIPPED, *MPI) for one in documents(REPOSITORY / f"runtimes/{name}.yaml"))
        cluster.apply(*(trainer.with_settings(one) if one["metadata"]["name"] in MPI else one for one in shipped))
        yield cluster
    finally:
        cluster.down()


@contextmanager
def kubeflow() -> Iterator[Cluster]:
    """Bring up a cluster with Kubeflow Trainer 2.3 and its own torch runtime."""
    (cluster,) = profiles.up("node", f"kubeflow-{os.getpid()}", owned=True)
    try:
        reference.install(cluster)
        cluster.apply(reference.runtime("torch-distributed", image("python")))
        yield cluster
    finally:
        cluster.down()


@pytest.fixture(scope="session")
def make_job(cluster: Cluster) -> Iterator[MakeJob]:
    """Return a function that returns a TrainJob on the cluster with Trainplane."""
    with jobs_on(cluster, trainplane.ENGINE) as make:
        yield make


@pytest.fixture(scope="session")
def histories(cluster: Cluster, make_job: MakeJob) -> Iterator[Histories]:
    """Begin all that is done to TrainJobs, at the same time, on both clusters; each test waits for its own."""

    def on_kubeflow() -> list[Job]:
        with kubeflow() as other, jobs_on(other, "reference") as make:
            return compare(make)

    with ThreadPoolExecutor(THREADS) as pool:
        yield begin(cluster, make_job, on_kubeflow, pool)


@contextmanager
def jobs_on(cluster: Cluster, engine: str) -> Iterator[MakeJob]:
    """Yield a function that returns TrainJobs in a new namespace, which is deleted afterwards, without waiting."""
    namespace = f"test-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", namespace)
    cluster.apply(trainer.settings(namespace))
    made: list[Job] = []

    def make(name: str, runtime: str = "torch-distributed", **others: Any) -> Job:
        tree = trainer.train_job(name, namespace, runtime, **others)
        made.append(Job(cluster, tree, others.get("nodes", 2), engine))
        return made[-1]

    yield make
    for job in made:
        job.close()
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")
