"""A real API server with our operator on it, and tenants who attack it from within."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from lab import trainplane
from tests.security.live.tenancy import USER, Tenancy, grant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster


@pytest.fixture(scope="session")
def operated(cluster: Cluster) -> Iterator[Cluster]:
    """Return a cluster with JobSet and our operator, shared by the run."""
    trainplane.install(cluster)
    yield cluster
    trainplane.uninstall(cluster)


@pytest.fixture
def tenancy(operated: Cluster) -> Tenancy:
    """Return a tenant with a namespace of its own."""
    name = f"tenant-{uuid.uuid4().hex[:8]}"
    operated.kubectl("create", "namespace", name)
    operated.apply(*grant(name))
    return Tenancy(operated, name, operated.user(USER, USER))
