"""A cluster of two nodes with Kueue, Trainplane, and its shipped runtimes; and one with Kubeflow Trainer 2.3."""

from __future__ import annotations

import os
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from lab import kueue, node, profiles, reference, trainplane
from lab.images import reference as image
from lab.paths import REPOSITORY
from lab.webhooks import documents
from tests.disruptions.job import Job, MakeJob
from tests.disruptions.runtimes import SHIPPED
from tests.disruptions.trainer import train_job

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster

FRAMEWORKS = ("batch/job", "jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Return a cluster with Trainplane, Kueue, and the shipped runtimes as they are."""
    (cluster,) = profiles.up("node", f"disruptions-{os.getpid()}", owned=True)
    try:
        node.install_second(cluster)
        trainplane.install_crds(cluster)
        kueue.install(cluster, frameworks=FRAMEWORKS)
        trainplane.install(cluster, with_crds=False, prefix="a")
        cluster.apply(*(one for name in SHIPPED for one in documents(REPOSITORY / f"runtimes/{name}.yaml")))
        yield cluster
    finally:
        cluster.down()


@pytest.fixture(scope="session")
def kubeflow() -> Iterator[Cluster]:
    """Return a cluster with Kubeflow Trainer 2.3 and its own torch runtime."""
    (cluster,) = profiles.up("node", f"kubeflow-{os.getpid()}", owned=True)
    try:
        reference.install(cluster)
        cluster.apply(reference.runtime("torch-distributed", image("python")))
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
def make_job(cluster: Cluster) -> Iterator[MakeJob]:
    """Return a function that returns a TrainJob in a namespace of the test's own."""
    with jobs_on(cluster, trainplane.ENGINE) as make:
        yield make


@pytest.fixture
def make_kubeflow_job(kubeflow: Cluster) -> Iterator[MakeJob]:
    """Return the same for the cluster with Kubeflow Trainer."""
    with jobs_on(kubeflow, "reference") as make:
        yield make


@contextmanager
def jobs_on(cluster: Cluster, engine: str) -> Iterator[MakeJob]:
    """Yield a function that returns TrainJobs in a new namespace, which is deleted afterwards, without waiting."""
    namespace = f"test-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", namespace)
    made: list[Job] = []

    def make(name: str, runtime: str = "torch-distributed", **others: Any) -> Job:
        tree = train_job(name, namespace, runtime, **others)
        made.append(Job(cluster, tree, others.get("nodes", 2), engine))
        return made[-1]

    yield make
    for job in made:
        job.close()
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")
