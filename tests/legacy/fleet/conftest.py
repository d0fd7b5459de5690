"""One fleet for these tests: a hub and a worker, where Kueue and our operators know all older kinds, and the hub view.

The worker has simulated nodes, which pods must tolerate, so that a document as users write it runs on a real one.
"""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from lab import hub, kwok, trainplane
from lab.fleet import Fleet, legacy_rights
from tests.fleet import objects
from tests.fleet.api import Api
from tests.fleet.team import MakeTeam, Team, make_team
from trainplane.api.legacy.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster

OLDER = tuple(kind.plural for kind in KINDS.values())
FRAMEWORKS = tuple(f"kubeflow.org/{kind.singular}" for kind in KINDS.values())
NODES = 2
"""Simulated nodes of the worker, with 32 CPUs each."""
HIGH = "high"
"""A priority before which others go."""


@pytest.fixture(scope="session")
def fleet() -> Iterator[Fleet]:
    """Return the fleet, up and connected, with the hub server."""

    def prepare(cluster: Cluster) -> None:
        trainplane.install(cluster, with_progress=False, older=OLDER)

    def equip(worker: Cluster) -> None:
        kwok.install(worker, nodes=NODES, tainted=True)
        worker.apply(*legacy_rights())

    name = f"legacy-{os.getpid()}"
    fleet = Fleet.up(name=name, owned=True, workers=1, frameworks=FRAMEWORKS, prepare=prepare, equip=equip)
    try:
        for cluster in fleet.clusters:
            Api(cluster).apply(objects.flavor(), objects.priority_class(HIGH, 1000))
        hub.install(fleet.hub, older=OLDER)
        yield fleet
    finally:
        fleet.down()


@pytest.fixture
def team(fleet: Fleet) -> MakeTeam:
    """Return a function that makes a team on the fleet, which ends with it."""

    def make(*, quotas: dict[str, dict[str, str]] | None = None, **others: Any) -> Team:
        return make_team(fleet, f"team-{uuid.uuid4().hex[:8]}", quotas=quotas or {}, **others)

    return make
