"""The recorded answers: each belongs to a case, and the reference gives them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conformance.drive import REFERENCE_PATIENCE, Drive
from tests.conformance.recording import FOLDER, Recorder, Replayed, drive_all

if TYPE_CHECKING:
    from lab.cluster import Cluster
    from tests.conformance.recording import Recordings
    from tests.suite import SuiteReport

pytestmark = pytest.mark.timeout(3600)


def test_every_answer_belongs_to_a_case(recordings: Recordings) -> None:
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == {*recordings.cases}
    assert recordings.strays() == []


@pytest.mark.reference
def test_the_reference_still_does_what_is_recorded(
    recordings: Recordings, reference_cluster: Cluster, report: SuiteReport
) -> None:
    live = Recorder(reference_cluster, "reference", prefix="rw")
    drive = Drive(Replayed(recordings), live, patience=lambda _: REFERENCE_PATIENCE)
    for cases in recordings.cases.values():
        recordings.require(cases)
    runs = drive_all(drive, recordings.cases.values())
    drive.close()
    found = [difference for run in runs for difference in run.differences]
    report.figure("recorded", len(runs))
    report.figure("recorded_differences", len(found))
    assert not found, "the reference (`ours` below) differs from what is recorded:\n" + "\n".join(map(str, found))
