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
from tests.conformance.side import Side

if TYPE_CHECKING:
    from collections.abc import Iterator

QPS = 5000.0
"""The limits of both operators are lifted: they are compared here, not measured."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the takeover come first: its cluster ends with it, so that no more than two are up at once."""
    items.sort(key=lambda item: item.path.name != "test_takeover.py")


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
def drive(reference_cluster: Cluster, our_cluster: Cluster) -> Iterator[Drive]:
    """Return a drive that compares the reference with ours."""
    sides = Side(reference_cluster, "reference", prefix="rc"), Side(our_cluster, "ours", prefix="ou")
    drive = Drive(*sides, is_expected=lambda found: explain(found) is not None)
    yield drive
    drive.close()
