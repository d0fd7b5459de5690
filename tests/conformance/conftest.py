"""Two API servers: one with the reference, one with ours."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from lab import jobset, reference, trainplane
from lab.cluster import Cluster
from tests.conformance import gangs
from tests.conformance.differences import explain
from tests.conformance.drive import Drive
from tests.conformance.mutation.recording import Recorder
from tests.conformance.side import Side
from tests.conformance.written import DEADLINES, WRITTEN
from tests.day import seed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conformance.drive import Run

QPS = 5000.0
"""The limits of both operators are lifted: they are compared here, not measured."""


def pytest_report_header() -> str:
    """Say how to run the same again."""
    return f"conformance: SEED={seed()} make conformance drives these generated cases again, with CASES=1,2 some alone"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the takeover come first: its cluster ends with it, so that no more than two are up at once.

    Faults come last: they are planted in the operator that all others compare.
    """
    places = {"test_takeover.py": 0, "test_planted.py": 2}
    items.sort(key=lambda item: places.get(item.path.name, 1))


@pytest.fixture(scope="session")
def reference_cluster() -> Iterator[Cluster]:
    """Return an API server with JobSet and the reference."""
    cluster = Cluster.up(f"conf-ref-{os.getpid()}", owned=True)
    try:
        jobset.install(cluster)
        gangs.install(cluster)
        reference.install(cluster, qps=QPS)
        yield cluster
    finally:
        cluster.down()


@pytest.fixture(scope="session")
def our_cluster() -> Iterator[Cluster]:
    """Return an API server with JobSet and our operator."""
    cluster = Cluster.up(f"conf-ours-{os.getpid()}", owned=True)
    try:
        jobset.install(cluster)
        gangs.install(cluster)
        trainplane.install(cluster, qps=QPS, with_progress=False)
        yield cluster
    finally:
        cluster.down()


@pytest.fixture(scope="session")
def itself(reference_cluster: Cluster) -> Iterator[Drive]:
    """Return a drive that compares the reference with itself: what it finds is the harness's fault."""
    drive = Drive(Side(reference_cluster, "reference", prefix="ra"), Side(reference_cluster, "again", prefix="rb"))
    yield drive
    drive.close()


@pytest.fixture(scope="session")
def recorder(reference_cluster: Cluster) -> Recorder:
    """Return the side of the reference, which keeps what it says for the faults that are planted later."""
    return Recorder(reference_cluster, "reference", prefix="rc")


@pytest.fixture(scope="session")
def drive(recorder: Recorder, our_cluster: Cluster) -> Iterator[Drive]:
    """Return a drive that compares the reference with ours."""
    ours = Side(our_cluster, "ours", prefix="ou")
    drive = Drive(recorder, ours, is_expected=lambda found: explain(found) is not None)
    yield drive
    drive.close()


@pytest.fixture(scope="session")
def written_runs(drive: Drive) -> list[Run]:
    """Return what was found of the written cases."""
    return drive.run(WRITTEN)


@pytest.fixture(scope="session")
def deadline_runs(drive: Drive) -> list[Run]:
    """Return what was found of the cases that wait for a deadline."""
    return drive.run(DEADLINES)
