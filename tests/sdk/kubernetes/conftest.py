"""One node cluster with our operator for the whole folder; each test has a namespace, and a backend in it."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING

import pytest

from lab import profiles, trainplane
from tests.sdk.kubernetes.stage import Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from lab.cluster import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    (cluster,) = profiles.up("node", f"sdk-{os.getpid()}", owned=True)
    try:
        trainplane.install(cluster)
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
async def stage(cluster: Cluster) -> AsyncIterator[Stage]:
    """Return a namespace of the test's own with a backend; it is deleted afterwards, without waiting."""
    namespace = f"sdk-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", namespace)
    async with Stage(cluster, namespace) as stage:
        yield stage
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")
