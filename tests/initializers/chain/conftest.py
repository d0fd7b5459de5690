"""An S3 server in the cluster, and a tenant."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from lab.images.trainplane import name
from tests.initializers.chain.store import Store
from tests.initializers.chain.tenant import Tenant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster


@pytest.fixture(scope="session")
def store(two_machines: Cluster) -> Store:
    return Store.start(two_machines)


@pytest.fixture(scope="session")
def tenant(two_machines: Cluster) -> Iterator[Tenant]:
    tenant = Tenant(two_machines, f"chain-{uuid.uuid4().hex[:8]}", name("initializers"))
    tenant.settle()
    yield tenant
    tenant.client.close()
    two_machines.kubectl("delete", "namespace", tenant.namespace, "--wait=false")
