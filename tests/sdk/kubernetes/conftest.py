"""One node cluster with our operator for the whole folder; each test has a namespace, and a backend in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab import profiles, trainplane
from tests.sdk.kubernetes.stage import Stage, staged

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from lab.cluster import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with profiles.node_with(trainplane.install, "sdk") as cluster:
        yield cluster


@pytest.fixture
async def stage(cluster: Cluster) -> AsyncIterator[Stage]:
    async with staged(cluster, "sdk") as stage:
        yield stage
