"""One node cluster with our operator for the tests with pods; each has a namespace, and a backend in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab import profiles, trainplane
from tests.sdk.kubernetes.stage import Stage, staged

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from lab.cluster import Cluster


@pytest.fixture(scope="module")
def node_with_operator() -> Iterator[Cluster]:
    with profiles.node_with(trainplane.install, "progress") as cluster:
        yield cluster


@pytest.fixture
async def stage(node_with_operator: Cluster) -> AsyncIterator[Stage]:
    async with staged(node_with_operator, "progress") as stage:
        yield stage
