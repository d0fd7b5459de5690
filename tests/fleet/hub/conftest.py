"""The hub server on the fleet's hub, and a node with real pods on its first worker: simulated pods print nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab import hub
from tests.fleet.api import Api
from tests.fleet.hub.stage import Seen, runtimes

if TYPE_CHECKING:
    from lab.cluster import Cluster
    from lab.fleet import Fleet
    from tests.fleet.team import MakeTeam


@pytest.fixture(scope="session")
def viewed_fleet(fleet: Fleet, real_worker: Cluster) -> Fleet:
    """Return the fleet with the hub server, and a node on worker1 with real pods."""
    del real_worker
    for cluster in fleet.clusters:
        Api(cluster).apply(*runtimes())
    if hub.ENGINE not in fleet.hub.engines():
        hub.install(fleet.hub)
    return fleet


@pytest.fixture
def seen(viewed_fleet: Fleet, team: MakeTeam) -> Seen:
    """Return a team whose jobs go to worker1, and what is seen of them on the hub."""
    return Seen(team(quotas={"worker2": {"cpu": "0", "memory": "0"}}))
