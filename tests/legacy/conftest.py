"""The clusters of these tests: a hub and a worker, on both of which our operator serves every older kind.

One fleet does for all, and is started beside the tests that need none. The hub has no machines: tests play its kubelet.
The worker has simulated nodes, which pods must tolerate, and a real one for documents as users write them. Each test
keeps to a namespace of its own.
"""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from lab import hub, jobset, kwok, node, trainplane
from lab.fleet import Fleet, legacy_rights
from tests.fleet import objects
from tests.legacy.older.world import KINDS as OLDER_SHAPE
from tests.legacy.older.world import TODAYS_RUNTIME
from trainplane.api.legacy.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster

JOBS = tuple(kind.plural for kind in KINDS.values())
FRAMEWORKS = tuple(f"kubeflow.org/{kind.singular}" for kind in KINDS.values())
NODES = 2
"""Simulated nodes of the worker, with 32 CPUs each."""
HIGH = "high"
"""A priority before which others go."""
_LIVE = {"fleet", "here"}
"""Fixtures of tests that need it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests that need no fleet go first: it starts meanwhile."""
    items.sort(key=_is_live)


def _is_live(item: pytest.Item) -> bool:
    return not _LIVE.isdisjoint(getattr(item, "fixturenames", ()))


def _up() -> Fleet:
    def prepare(cluster: Cluster) -> None:
        trainplane.install(cluster, older=(*JOBS, *OLDER_SHAPE))

    def equip(worker: Cluster) -> None:
        kwok.install(worker, nodes=NODES, tainted=True)
        worker.apply(*legacy_rights())

    name = f"legacy-{os.getpid()}"
    fleet = Fleet.up(name=name, owned=True, workers=1, frameworks=FRAMEWORKS, prepare=prepare, equip=equip)
    for cluster in fleet.clusters:
        cluster.apply(objects.flavor(), objects.priority_class(HIGH, 1000), TODAYS_RUNTIME)
    with ThreadPoolExecutor() as pool:
        beside = [pool.submit(node.install, fleet.workers[0]), pool.submit(jobset.install, fleet.hub)]
        hub.install(fleet.hub, older=JOBS)
    for one in beside:
        one.result()
    return fleet


@pytest.fixture(scope="session", autouse=True)
def starting(request: pytest.FixtureRequest) -> Iterator[Future[Fleet]]:
    """Start the fleet, if a test will ask for it, in a thread that lasts: clusters end with the one that made them."""
    with ThreadPoolExecutor(1) as pool:
        if not any(map(_is_live, request.session.items)):
            yield Future()
            return
        fleet = pool.submit(_up)
        yield fleet
        if not fleet.exception():
            fleet.result().down()


@pytest.fixture(scope="session")
def fleet(starting: Future[Fleet]) -> Fleet:
    """Return the fleet, up and connected, with the hub server."""
    return starting.result()


@pytest.fixture(scope="session")
def cluster(fleet: Fleet) -> Cluster:
    """Return a cluster without machines that serves all older kinds, both shapes of TrainJobs, and JobSets."""
    return fleet.hub


@pytest.fixture(scope="session")
def node_cluster(fleet: Fleet) -> Cluster:
    """Return a cluster with a node that serves all older kinds."""
    return fleet.workers[0]
