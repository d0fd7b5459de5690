"""What an admin has at hand: our image, built once for the run, and an empty cluster with a node."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from lab import chart, jobset, node
from lab.cluster import Cluster
from tests.install.admin import Admin
from tests.install.image import Archive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def archived() -> Path:
    """Return where `make image` has put our image."""
    assert chart.ARCHIVE.exists(), "the image is not built: run `make image`"
    return chart.ARCHIVE


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
        chart.load_image(cluster)
        yield Admin(cluster)
    finally:
        cluster.down()
