"""A cluster of two machines with a folder that both see, as a network file system would be."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from lab import node
from tests import shared
from tests.seeds.machines.site import Site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster


@pytest.fixture(scope="session")
def two_machines() -> Iterator[Cluster]:
    """Return a cluster with a second node."""
    with shared.own_node_cluster("machines") as cluster:
        node.install_second(cluster)
        yield cluster


@pytest.fixture
def site(two_machines: Cluster) -> Iterator[Site]:
    """Return a user's namespace on two machines; it is deleted afterwards, without waiting."""
    site = Site(two_machines, f"test-{uuid.uuid4().hex[:8]}")
    site.cluster.kubectl("create", "namespace", site.namespace)
    yield site
    site.cluster.kubectl("delete", "namespace", site.namespace, "--wait=false")
