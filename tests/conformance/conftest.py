"""Two API servers: one with Trainplane, and one with the reference for tests marked `reference`.

The other tests compare Trainplane with recorded answers of the reference.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from lab import jobset, reference, trainplane
from lab.cluster import Cluster
from tests.conformance import gangs
from tests.conformance.differences import explain
from tests.conformance.drive import REFERENCE_PATIENCE, Drive
from tests.conformance.recording import Quiet, Recorder, Recordings, Replayed, record
from tests.conformance.side import Side
from tests.conformance.written import DEADLINES, WRITTEN, recorded_cases
from tests.day import seed
from tests.recorded import RECORD, WHOLE
from tests.size import FULL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conformance.drive import Run

QPS = 5000.0
"""The limits of both operators are lifted: they are compared here, not measured."""


def pytest_report_header() -> str:
    """Say how to run the same again."""
    return f"conformance: SEED={seed()} make conformance drives these generated cases again, with CASES=1,2 some alone"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs the reference unless it is asked for, and put tests in order.

    The takeover comes first: its cluster ends with it, so that no more than two are up at once. Faults come last: they
    are planted in the operator that all others compare.
    """
    left_out = [item for item in items if item.get_closest_marker("reference") and not _is_asked_for(item, config)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    places = {"test_takeover.py": 0, "test_planted.py": 2}
    items.sort(key=lambda item: places.get(item.path.name, 1))


def _is_asked_for(item: pytest.Item, config: pytest.Config) -> bool:
    """Return whether a run asks for a test of the reference: by WHOLE=1, by FULL=1, or by the name of its file."""
    return WHOLE or FULL or any(item.path.name in argument for argument in config.args)


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
def recordings(request: pytest.FixtureRequest) -> Recordings:
    """Return the recorded answers of the reference; with RECORD=1, they are recorded first."""
    recordings = Recordings(recorded_cases())
    if RECORD:
        cluster: Cluster = request.getfixturevalue("reference_cluster")
        recorder = Recorder(cluster, "reference", prefix="rc")
        drive = Quiet(recorder, Recorder(cluster, "again", prefix="rd"), patience=lambda _: REFERENCE_PATIENCE)
        try:
            record(recordings, drive, recorder)
        finally:
            drive.close()
    return recordings


@pytest.fixture(scope="session")
def drive(recordings: Recordings, our_cluster: Cluster) -> Iterator[Drive]:
    """Return a drive that compares ours with what is recorded of the reference."""
    ours = Side(our_cluster, "ours", prefix="ou")
    drive = Drive(Replayed(recordings), ours, is_expected=lambda found: explain(found) is not None)
    yield drive
    drive.close()


@pytest.fixture(scope="session")
def live_drive(reference_cluster: Cluster, our_cluster: Cluster) -> Iterator[Drive]:
    """Return a drive that compares ours with the reference, for cases that aren't recorded."""
    sides = Side(reference_cluster, "reference", prefix="rl"), Side(our_cluster, "ours", prefix="ol")
    drive = Drive(*sides, is_expected=lambda found: explain(found) is not None)
    yield drive
    drive.close()


@pytest.fixture(scope="session")
def written_runs(recordings: Recordings, drive: Drive) -> list[Run]:
    """Return what was found of the written cases."""
    recordings.require(WRITTEN)
    return drive.run(WRITTEN)


@pytest.fixture(scope="session")
def deadline_runs(recordings: Recordings, drive: Drive) -> list[Run]:
    """Return what was found of the cases that wait for a deadline."""
    recordings.require(DEADLINES)
    return drive.run(DEADLINES)
