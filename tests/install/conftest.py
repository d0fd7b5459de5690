"""What an admin has at hand: our image, built once for the run, and an empty cluster with a node."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from lab import jobset, node
from lab.cluster import Cluster
from lab.images import trainplane
from tests.install.admin import Admin
from tests.install.image import Archive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def archived() -> Path:
    """Return where `make image` has put the image of operator and hub."""
    assert trainplane.archive("operator").exists(), "the image is not built: run `make image`"
    return trainplane.archive("operator")


@pytest.fixture(scope="session")
def archive(archived: Path) -> Archive:
    return Archive.read(archived)


@pytest.fixture(scope="session")
def admin() -> Iterator[Admin]:
    """Return the admin of a cluster with a node, JobSet and our image, and nothing else."""
    cluster = Cluster.up(f"install-{os.getpid()}", owned=True, audited=True)
    try:
        jobset.install(cluster)
        node.install(cluster)
        node.give(cluster, "operator")
        yield Admin(cluster)
    finally:
        cluster.down()
