"""The reference and ours, fed with the same: what differs is declared, or the suite fails."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance import (
    admission_cases,
    controller_cases,
    flux_cases,
    found_cases,
    gang_cases,
    jax_cases,
    mpi_cases,
    plain_cases,
    torch_cases,
    weakness_cases,
    xgboost_cases,
)
from tests.conformance.differences import DECLARED, table, tally, unexplained
from tests.conformance.generated import collect
from tests.size import sized

if TYPE_CHECKING:
    from tests.conformance.cases import Case
    from tests.conformance.compare import Difference
    from tests.conformance.drive import Drive, Run
    from tests.suite import SuiteReport

WRITTEN = (
    *controller_cases.CASES,
    *plain_cases.CASES,
    *torch_cases.CASES,
    *jax_cases.CASES,
    *xgboost_cases.CASES,
    *flux_cases.CASES,
    *mpi_cases.CASES,
    *gang_cases.CASES,
    *admission_cases.CASES,
    *weakness_cases.CASES,
    *found_cases.CASES,
)
GENERATED = sized(100, full=500, small=40)
SEED = int(os.environ.get("SEED", "0"))
"""Which cases are generated; another number finds others."""
IN_FLIGHT = 150
DOCUMENT = Path(__file__).parents[2] / "docs/conformance.md"

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def findings() -> list[Difference]:
    """Everything that the tests of this module found."""
    return []


def _judge(runs: list[Run], findings: list[Difference], report: SuiteReport) -> None:
    """Count the cases, and fail with every difference that nothing declares."""
    found = [difference for run in runs for difference in run.differences]
    findings += found
    faults = unexplained(found)
    report.figure("cases", report.figures.get("cases", 0) + len(runs))
    report.figure("unexplained", report.figures.get("unexplained", 0) + len(faults))
    for fault in faults:
        report.row(case=str(fault.case), place=fault.place, path=fault.path)
    assert not faults, f"{len(faults)} unexplained differences:\n" + "\n".join(map(str, faults))


def _ids(cases: tuple[Case, ...]) -> list[str]:
    return [case.id for case in cases]


def test_cases_are_told_apart() -> None:
    ids = _ids((*WRITTEN, *controller_cases.DEADLINES))
    assert len(set(ids)) == len(ids)


def test_written_cases(drive: Drive, findings: list[Difference], report: SuiteReport) -> None:
    _judge(drive.run(WRITTEN), findings, report)


def test_deadlines(drive: Drive, findings: list[Difference], report: SuiteReport) -> None:
    _judge(drive.run(controller_cases.DEADLINES), findings, report)


def test_generated_cases(drive: Drive, findings: list[Difference], report: SuiteReport) -> None:
    cases = collect(GENERATED, of=SEED)
    assert len(cases) == GENERATED
    runs = [run for start in range(0, GENERATED, IN_FLIGHT) for run in drive.run(cases[start : start + IN_FLIGHT])]
    _judge(runs, findings, report)
    # Cases that both refuse compare little: most must have come to a JobSet.
    made = [run for run in runs if all(verdict.accepted for pair in run.verdicts[:2] for verdict in pair)]
    assert len(made) > 0.8 * len(runs)


def test_every_declared_difference_is_still_one(findings: list[Difference], report: SuiteReport) -> None:
    seen = tally(findings)
    for declared in DECLARED:
        report.row(declared=declared.id, seen=seen[declared.id])
    assert [declared.id for declared in DECLARED if not seen[declared.id]] == []


def test_every_declared_difference_is_documented() -> None:
    text = DOCUMENT.read_text()
    assert [declared.id for declared in DECLARED if table([declared]) not in text] == []
