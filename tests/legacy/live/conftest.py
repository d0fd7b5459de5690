"""A tenant of the cluster that has our operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.tenant import wait_allowed
from tests.fleet.api import Api
from tests.legacy.live.tenant import NAMESPACE, USER, Tenant, home

if TYPE_CHECKING:
    from lab.cluster import Cluster


@pytest.fixture(scope="session")
def tenant(node_cluster: Cluster) -> Tenant:
    node_cluster.apply(*home())
    wait_allowed(node_cluster, USER, "create", "pods", NAMESPACE)
    tenant = Tenant(node_cluster, Api(node_cluster))
    tenant.wait("the account of pods, without which they are refused", tenant.has_account)
    return tenant
