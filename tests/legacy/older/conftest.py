"""A user of both shapes of TrainJobs, on a cluster without machines: tests play the kubelet."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.legacy.older.user import Teammate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster


@pytest.fixture
def user(cluster: Cluster) -> Iterator[Teammate]:
    """Return a user in a namespace of the test's own; it is deleted afterwards, without waiting."""
    user = Teammate(cluster, f"test-{uuid.uuid4().hex[:8]}")
    cluster.kubectl("create", "namespace", user.namespace)
    yield user
    cluster.kubectl("delete", "namespace", user.namespace, "--wait=false")
