"""Fixtures that bring real clusters to tests: `pytest -p lab.pytest_plugin`.

Clusters belong to the test run: they end with it, also when it is killed. Session-wide fixtures start on first use, so
a run of one test starts only what that test asks for.
"""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING

import pytest

from lab import profiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster


def _profile(name: str) -> Iterator[Cluster]:
    (cluster,) = profiles.up(name, f"{name}-{os.getpid()}", owned=True)
    yield cluster
    cluster.down()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Return a control plane with JobSet, shared by the run; use `namespace` to keep tests apart."""
    yield from _profile("control")


@pytest.fixture(scope="session")
def node_cluster() -> Iterator[Cluster]:
    """Return a cluster with a node that runs real pods, shared by the run."""
    yield from _profile("node")


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """Return a namespace of the test's own in `cluster`; it is deleted afterwards, without waiting."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")
