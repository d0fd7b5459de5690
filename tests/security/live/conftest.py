"""A real API server with our operator on it, and tenants who attack it from within."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab import trainplane
from tests.security.live.tenancy import settle_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster
    from tests.security.live.tenancy import Tenancy


@pytest.fixture(scope="session")
def operated(cluster: Cluster) -> Iterator[Cluster]:
    """Return a cluster with JobSet and our operator, which serves its metrics by TLS; shared by the run."""
    served = {"bindAddress": f"127.0.0.1:{trainplane.METRICS_PORT}", "secureServing": True}
    trainplane.install(cluster, settings={"metrics": served})
    yield cluster
    trainplane.uninstall(cluster)


@pytest.fixture
def tenancy(operated: Cluster) -> Tenancy:
    """Return a tenant with a namespace of its own."""
    return settle_in(operated)
