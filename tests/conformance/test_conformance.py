"""The reference and ours, fed with the same: what differs is declared, or the suite fails."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance.differences import DECLARED, table, tally, unexplained
from tests.conformance.generated import SEED, generate
from tests.conformance.shown import unshown
from tests.conformance.written import DEADLINES, WRITTEN
from tests.conformance.written import GENERATED as RECORDED
from tests.day import FIXED
from tests.size import sized

if TYPE_CHECKING:
    from tests.conformance.cases import Case
    from tests.conformance.compare import Difference
    from tests.conformance.drive import Drive, Run
    from tests.conformance.recording import Recordings
    from tests.suite import SuiteReport

GENERATED = sized(RECORDED, full=500)
CHOSEN = tuple(map(int, filter(None, os.environ.get("CASES", "").split(","))))
"""The numbers of those generated cases that are to run alone: `SEED=2 CASES=146,394 make conformance`."""
IN_FLIGHT = 150
DOCUMENT = Path(__file__).parents[2] / "docs/conformance.md"

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def findings() -> list[Difference]:
    """Everything that written cases showed: those of a day's seed must not be needed to show what is declared."""
    return []


def _judge(runs: list[Run], report: SuiteReport) -> list[Difference]:
    """Count the cases, and fail with every difference that nothing declares; return the others."""
    found = [difference for run in runs for difference in run.differences]
    faults = unexplained(found) + [one for run in runs for one in unshown(run)]
    report.figure("cases", report.figures.get("cases", 0) + len(runs))
    report.figure("unexplained", report.figures.get("unexplained", 0) + len(faults))
    for fault in faults:
        report.row(case=str(fault.case), place=fault.place, path=fault.path)
    assert not faults, f"{len(faults)} unexplained differences:\n" + "\n".join(map(str, faults))
    return found


def _ids(cases: tuple[Case, ...]) -> list[str]:
    return [case.id for case in cases]


def test_cases_are_told_apart() -> None:
    ids = _ids((*WRITTEN, *DEADLINES))
    assert len(set(ids)) == len(ids)


def test_written_cases(written_runs: list[Run], findings: list[Difference], report: SuiteReport) -> None:
    findings += _judge(written_runs, report)


def test_deadlines(deadline_runs: list[Run], findings: list[Difference], report: SuiteReport) -> None:
    findings += _judge(deadline_runs, report)


def test_generated_cases(request: pytest.FixtureRequest, recordings: Recordings, report: SuiteReport) -> None:
    report.figure("seed", SEED)
    numbers = CHOSEN or range(GENERATED)
    is_recorded = FIXED.toordinal() == SEED and max(numbers) < RECORDED
    if is_recorded:
        cases = [recordings.cases["generated"][number] for number in numbers]
        recordings.require(cases)
    else:
        cases = [generate(number, of=SEED) for number in numbers]
    # Cases of another seed aren't recorded: the reference is asked.
    drive: Drive = request.getfixturevalue("drive" if is_recorded else "live_drive")
    runs = [run for start in range(0, len(cases), IN_FLIGHT) for run in drive.run(cases[start : start + IN_FLIGHT])]
    made = [run for run in runs if all(verdict.accepted for pair in run.verdicts[:2] for verdict in pair)]
    report.figure("generated", len(runs))
    report.figure("generated_made", len(made))
    _judge(runs, report)
    # Cases that both refuse compare little: most must have come to a JobSet.
    assert CHOSEN or len(made) > 0.7 * len(runs)


def test_every_declared_difference_is_still_one(findings: list[Difference], report: SuiteReport) -> None:
    seen = tally(findings)
    for declared in DECLARED:
        report.row(declared=declared.id, seen=seen[declared.id])
    assert [declared.id for declared in DECLARED if not seen[declared.id]] == []


def test_every_declared_difference_is_documented() -> None:
    text = DOCUMENT.read_text()
    assert [declared.id for declared in DECLARED if table([declared]) not in text] == []
