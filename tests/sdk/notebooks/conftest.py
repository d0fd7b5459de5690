"""A cluster for the notebooks; the same one as for the tutorial, where both run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.sdk.notebooks.stage import shared_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    cluster = shared_cluster()
    yield cluster
    cluster.down()
