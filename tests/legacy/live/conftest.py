"""A tenant of the cluster that has our operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fleet.api import Api
from tests.legacy.live.tenant import Tenant, home

if TYPE_CHECKING:
    from lab.cluster import Cluster


@pytest.fixture(scope="session")
def tenant(node_cluster: Cluster) -> Tenant:
    node_cluster.apply(*home())
    return Tenant(node_cluster, Api(node_cluster))
