"""One fleet for the whole suite: a hub and two workers, each with Kueue and our operator, workers with simulated nodes.

Tests share it: each has a team of its own (`team`), and puts back what it cut, killed or configured.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from lab import kwok, node, trainplane
from lab.fleet import Fleet
from lab.images import trainplane as images
from tests import shared
from tests.fleet import objects
from tests.fleet.api import Api
from tests.fleet.scenarios import MARKER, Scenarios
from tests.fleet.team import MakeTeam, Team, make_team, remove_team

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster

FRAMEWORKS = ("batch/job", "jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob")
NODES = 4
"""Simulated nodes of a worker, with 32 CPUs, 256 GiB and 8 GPUs each."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    config.pluginmanager.register(Scenarios())


@pytest.fixture(scope="session")
def fleet() -> Iterator[Fleet]:
    """Return the fleet, up and connected, with the runtimes of `objects` on all clusters."""
    with shared.shared("fleet", Fleet.find, _start) as fleet:
        yield fleet


@pytest.fixture(scope="session")
def real_worker(fleet: Fleet) -> Cluster:
    """Return the first worker, with a node that runs pods beside the simulated ones; they must tolerate `REAL`."""
    worker = fleet.workers[0]
    if "kubelet" not in worker.engines():
        node.install(worker)
        worker.kubectl("taint", "node", node.NAME, f"{objects.REAL['key']}=:{objects.REAL['effect']}")
    return worker


@pytest.fixture
def team(fleet: Fleet) -> Iterator[MakeTeam]:
    """Return a function that makes a team on the fleet; all that it made is deleted afterwards, without waiting."""
    made: list[Team] = []

    def make(*, quotas: dict[str, dict[str, str]] | None = None, **others: Any) -> Team:
        made.append(make_team(fleet, f"team-{uuid.uuid4().hex[:8]}", quotas=quotas or {}, **others))
        return made[-1]

    yield make
    for one in made:
        remove_team(one)


def _start(name: str, owned: bool) -> Fleet:
    fleet = Fleet.up(name=name, owned=owned, frameworks=FRAMEWORKS, prepare=_prepare, equip=_equip)
    for cluster in fleet.clusters:
        runtimes = (objects.runtime(objects.RUNTIME), objects.runtime(objects.HELD, lasts="24h"))
        Api(cluster).apply(objects.flavor(), *runtimes)
    return fleet


def _prepare(cluster: Cluster) -> None:
    trainplane.install(cluster, settings={"output": {"image": images.name("initializers")}})


def _equip(worker: Cluster) -> None:
    kwok.install(worker, nodes=NODES, capacity={"nvidia.com/gpu": "8"})
