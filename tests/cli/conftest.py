"""The shared node cluster; each test may have a tenant's namespace in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import shared
from tests.cli.tenant import Tenant, tenant_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with shared.node_cluster() as cluster:
        yield cluster


@pytest.fixture
def tenant(cluster: Cluster) -> Iterator[Tenant]:
    """Return a tenant of the test's own, in an empty namespace."""
    with tenant_of(cluster) as tenant:
        yield tenant
