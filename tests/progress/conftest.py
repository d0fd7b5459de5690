"""The shared node cluster for the tests with pods; each has a namespace, and a backend in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import shared
from tests.sdk.kubernetes.stage import Stage, staged

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from lab.cluster import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with shared.node_cluster() as cluster:
        yield cluster


@pytest.fixture
async def stage(cluster: Cluster) -> AsyncIterator[Stage]:
    async with staged(cluster, "progress") as stage:
        yield stage
