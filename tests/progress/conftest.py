"""One node cluster with our operator for the tests with pods; each has a namespace, and a backend in it."""

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


@pytest.fixture(scope="module")
def node_with_operator() -> Iterator[Cluster]:
    (cluster,) = profiles.up("node", f"progress-{os.getpid()}", owned=True)
    try:
        trainplane.install(cluster)
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
async def stage(node_with_operator: Cluster) -> AsyncIterator[Stage]:
    """Return a namespace of the test's own with a backend; it is deleted afterwards, without waiting."""
    namespace = f"progress-{uuid.uuid4().hex[:8]}"
    node_with_operator.kubectl("create", "namespace", namespace)
    async with Stage(node_with_operator, namespace) as stage:
        yield stage
    node_with_operator.kubectl("delete", "namespace", namespace, "--wait=false")
