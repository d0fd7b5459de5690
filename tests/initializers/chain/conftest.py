"""A cluster of two machines with our operator, our image of initializers, an S3 server and a tenant."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from lab import node, profiles, trainplane
from tests.initializers.chain.store import Store
from tests.initializers.chain.tenant import MACHINES, Tenant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster


@pytest.fixture(scope="session")
def two_machines() -> Iterator[Cluster]:
    with profiles.node_with(trainplane.install, "chain") as cluster:
        node.install_second(cluster)
        yield cluster


@pytest.fixture(scope="session")
def store(two_machines: Cluster) -> Store:
    return Store.start(two_machines)


@pytest.fixture(scope="session")
def image(two_machines: Cluster) -> str:
    """Return the name of the image that `make image` built of this checkout, which both machines have."""
    return node.give(two_machines, "initializers", *MACHINES)


@pytest.fixture(scope="session")
def tenant(two_machines: Cluster, image: str) -> Iterator[Tenant]:
    tenant = Tenant(two_machines, f"chain-{uuid.uuid4().hex[:8]}", image)
    tenant.settle()
    yield tenant
    tenant.client.close()
    two_machines.kubectl("delete", "namespace", tenant.namespace, "--wait=false")
