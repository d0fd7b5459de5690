"""A cluster with our operator on it that the tests of this folder may hurt: it is theirs alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from lab import jobset, trainplane
from lab.cluster import Cluster
from tests.integration.operator.test_operator import runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

LEASE = {"leaderElect": True, "leaseDuration": "6s", "renewDeadline": "4s", "retryPeriod": "1s"}
"""Quicker than the default, so that a leadership lost is lost within the test."""


@pytest.fixture(scope="session")
def hurt() -> Iterator[Cluster]:
    """Return a cluster with JobSet and our operator, electing a leader, as nobody else uses."""
    cluster = Cluster.up(f"fire-{os.getpid()}", owned=True)
    try:
        jobset.install(cluster)
        trainplane.install(cluster, settings={"leaderElection": LEASE})
        cluster.apply(runtime("torch"))
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
def place(hurt: Cluster, request: pytest.FixtureRequest) -> str:
    """Return a namespace of the test's own."""
    name: str = request.node.name.replace("_", "-").partition("[")[0][:60].strip("-")
    hurt.kubectl("create", "namespace", name)
    return name
