"""One node cluster with JobSet and our operator for the whole suite; each test may have a tenant's namespace in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab import profiles, trainplane
from tests.cli.tenant import Tenant, tenant_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with profiles.node_with(trainplane.install, "cli") as cluster:
        yield cluster


@pytest.fixture
def tenant(cluster: Cluster) -> Iterator[Tenant]:
    """Return a tenant of the test's own, in an empty namespace."""
    with tenant_of(cluster) as tenant:
        yield tenant
