"""Three clusters for the run, and the story of their pages."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.install.fleet.jobs import Jobs
from tests.install.fleet.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage.up(f"pods-{os.getpid()}", tmp_path_factory.mktemp("fleet"))
    try:
        yield stage
    finally:
        stage.fleet.down()


@pytest.fixture
def jobs(stage: Stage) -> Jobs:
    return Jobs(stage)
