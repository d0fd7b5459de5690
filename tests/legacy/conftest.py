"""A cluster with a node on which our operator, with its own rights, serves the kinds that ran as pods of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab import profiles, trainplane
from trainplane.api.legacy.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster


@pytest.fixture(scope="session")
def node_cluster() -> Iterator[Cluster]:
    """Bring it up once for all tests with real pods; each keeps to a namespace of its own."""

    def install(cluster: Cluster) -> None:
        trainplane.install(cluster, older=tuple(kind.plural for kind in KINDS.values()))

    with profiles.node_with(install, "legacy") as cluster:
        yield cluster
