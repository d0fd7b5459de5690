"""One cluster with a node for all: our operator, with its own rights, serves the older kinds to a tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab import profiles, trainplane
from tests.fleet.api import Api
from tests.legacy.live.tenant import KINDS, Tenant, home

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster


@pytest.fixture(scope="session")
def tenant() -> Iterator[Tenant]:
    def install(cluster: Cluster) -> None:
        trainplane.install(cluster, older=(*KINDS, "mpijobs"))
        cluster.apply(*home())

    with profiles.node_with(install, "legacy-live") as cluster:
        yield Tenant(cluster, Api(cluster))
