"""A cluster that serves both shapes of TrainJobs, and a user of it. It has no machines: tests play the kubelet."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING

import pytest

from lab import profiles, trainplane
from lab.paths import REPOSITORY
from lab.webhooks import documents
from tests.legacy.older.user import Teammate
from tests.legacy.older.world import KINDS, TODAYS_RUNTIME, rights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    (cluster,) = profiles.up("control", f"older-{os.getpid()}", owned=True)
    try:
        crds = [f"kubeflow.org_{plural}.yaml" for plural in KINDS]
        cluster.apply(*documents(*(REPOSITORY / "manifests/crds-legacy" / name for name in crds)))
        cluster.wait_established(*(f"{plural}.kubeflow.org" for plural in KINDS))
        cluster.apply(*rights())
        trainplane.install(cluster, settings={"legacy": {"kinds": list(KINDS)}})
        cluster.apply(TODAYS_RUNTIME)
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
def user(cluster: Cluster) -> Iterator[Teammate]:
    """Return a user in a namespace of the test's own; it is deleted afterwards, without waiting."""
    user = Teammate(cluster, f"test-{uuid.uuid4().hex[:8]}")
    cluster.kubectl("create", "namespace", user.namespace)
    yield user
    cluster.kubectl("delete", "namespace", user.namespace, "--wait=false")
