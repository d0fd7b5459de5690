"""The shared node cluster; each test has a namespace, and a backend in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import shared
from tests.sdk.kubernetes.stage import Stage, staged

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from lab.cluster import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with shared.node_cluster() as cluster:
        yield cluster


@pytest.fixture
async def stage(cluster: Cluster) -> AsyncIterator[Stage]:
    async with staged(cluster, "sdk") as stage:
        yield stage
