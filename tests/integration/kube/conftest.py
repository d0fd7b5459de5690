"""Clients of the lab's clusters and a resource of the tests' own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.kube.support import WIDGET_CRD, WIDGETS
from trainplane.kube.client import Client
from trainplane.kube.loading import load_config

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from lab.cluster import Cluster
    from trainplane.kube.config import Config
    from trainplane.kube.resource import Resource


@pytest.fixture
def config(cluster: Cluster) -> Config:
    """Return the administrator's configuration, with a client certificate."""
    return load_config(cluster.kubeconfig)


@pytest.fixture
async def client(config: Config) -> AsyncIterator[Client]:
    """Return a client as the administrator."""
    async with Client.connect(config) as open_:
        yield open_


@pytest.fixture(scope="session")
def widgets(cluster: Cluster) -> Resource:
    """Return a custom resource with a status and a schema that can say no."""
    cluster.apply(WIDGET_CRD)
    cluster.wait_established(WIDGET_CRD["metadata"]["name"])
    return WIDGETS
