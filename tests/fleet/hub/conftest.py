"""The hub server on the fleet's hub, and a node with real pods on its first worker: simulated pods print nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab import hub, node
from tests.fleet.api import Api
from tests.fleet.hub.stage import TAINT, Seen, runtimes

if TYPE_CHECKING:
    from lab.fleet import Fleet
    from tests.fleet.team import MakeTeam


@pytest.fixture(scope="session")
def viewed_fleet(fleet: Fleet) -> Fleet:
    """Return the fleet with the hub server, and a node on worker1 that only pods of these tests are put on."""
    worker = fleet.workers[0]
    if "kubelet" not in worker.engines():
        node.install(worker)
        taint = f"{TAINT['key']}={TAINT['value']}:{TAINT['effect']}"
        worker.kubectl("taint", "node", node.NAME, taint, "--overwrite")
    for cluster in fleet.clusters:
        Api(cluster).apply(*runtimes())
    if hub.ENGINE not in fleet.hub.engines():
        hub.install(fleet.hub)
    return fleet


@pytest.fixture
def seen(viewed_fleet: Fleet, team: MakeTeam) -> Seen:
    """Return a team whose jobs go to worker1, and what is seen of them on the hub."""
    return Seen(team(quotas={"worker2": {"cpu": "0", "memory": "0"}}))
