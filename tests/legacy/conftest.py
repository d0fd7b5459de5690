"""A cluster with a node on which our operator, with its own rights, serves the kinds that ran as pods of their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from lab import profiles, trainplane
from trainplane.api.legacy.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster

HERE: Final = Path(__file__).parent
CLUSTERS: Final = {
    "fleet": "fleet",
    "live": "pods",
    "mpi/test_pods.py": "pods",
    "old/test_sdk.py": "pods",
    "mpi/test_life.py": "mpi",
    "migrate/test_live.py": "migrate",
    "old/test_takeover.py": "takeover",
    "older": "older",
}
"""Tests by the cluster that they share: those of one run in one process."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a cluster in one process."""
    for item in items:
        for part, group in CLUSTERS.items():
            if item.path.is_relative_to(HERE / part):
                item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def node_cluster() -> Iterator[Cluster]:
    """Bring it up once for all tests with real pods; each keeps to a namespace of its own."""

    def install(cluster: Cluster) -> None:
        trainplane.install(cluster, older=tuple(kind.plural for kind in KINDS.values()))

    with profiles.node_with(install, "legacy") as cluster:
        yield cluster
