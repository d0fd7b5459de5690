"""One cluster for all tests of one cluster, and a team of its own for each."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.fleet import objects
from tests.fleet.one_cluster import runtimes, stage
from tests.fleet.one_cluster.team import Team

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster


@pytest.fixture(scope="session")
def kueue_cluster() -> Iterator[Cluster]:
    """Return a cluster with JobSet, Kueue, our operator and simulated nodes, shared by the run."""
    cluster = stage.bring_up(f"kueue-{uuid.uuid4().hex[:6]}", owned=True)  # other suites may bring up their own
    try:
        cluster.apply(*runtimes.SHARED, objects.flavor())
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
def team(kueue_cluster: Cluster) -> Iterator[Team]:
    """Return a team with a namespace of its own; what it made is deleted afterwards, without waiting."""
    with kueue_cluster.connection() as connection:
        team = Team(kueue_cluster, connection, f"team-{uuid.uuid4().hex[:8]}")
        team.create(objects.namespace(team.namespace))
        try:
            yield team
        finally:
            team.leave()
