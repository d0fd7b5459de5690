"""The shared node cluster, and a user in it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests import shared
from tests.e2e.user import User

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with shared.node_cluster() as cluster:
        yield cluster


@pytest.fixture
def user(cluster: Cluster) -> Iterator[User]:
    """Return a user in a namespace of the test's own; it is deleted afterwards, without waiting."""
    user = User(cluster, f"test-{uuid.uuid4().hex[:8]}")
    cluster.kubectl("create", "namespace", user.namespace)
    yield user
    cluster.kubectl("delete", "namespace", user.namespace, "--wait=false")
