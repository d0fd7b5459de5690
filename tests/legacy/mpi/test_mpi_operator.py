"""Our MPIJob beside mpi-operator v0.8.2's: whatever differs is declared, and planted faults are found."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.legacy.mpi.cases import all_cases
from tests.legacy.mpi.compare import compare, ours, references
from tests.legacy.mpi.differences import DECLARED, explain
from tests.legacy.mpi.planted import FAULTS
from trainplane.legacy.mpi import objects
from trainplane.render.plugins.mpi import make_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.legacy.mpi.cases import Case
    from tests.legacy.mpi.compare import Difference, Outcome
    from tests.legacy.mpi.planted import Fault
    from tests.suite import SuiteReport

Answered = list[tuple["Case", "Outcome"]]


@pytest.fixture(scope="module", autouse=True)
def drawn_once() -> Iterator[None]:
    """Draw one pair of keys for all cases: what is drawn is not compared."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objects, "make_keys", cache(make_keys))
        yield


@pytest.fixture(scope="module")
def answered() -> Answered:
    """Every case with mpi-operator's outcome."""
    cases = list(all_cases())
    return list(zip(cases, references(cases), strict=True))


def _found(answered: Answered) -> Iterator[Difference]:
    return (found for case, reference in answered for found in compare(case, reference, ours(case)))


def test_what_differs_is_declared_and_what_is_declared_differs(answered: Answered, report: SuiteReport) -> None:
    explained = [(found, explain(found)) for found in _found(answered)]
    unexplained = [str(found) for found, declared in explained if declared is None]
    report.figure("mpi_cases", len(answered))
    report.figure("mpi_unexplained", len(unexplained))
    assert not unexplained, "\n".join(unexplained[:10])
    assert {declared.id for _, declared in explained if declared} == {declared.id for declared in DECLARED}


def test_cases_have_names_of_their_own(answered: Answered) -> None:
    names = [case.name for case, _ in answered]
    assert len(set(names)) == len(names) >= 60


def test_planted_faults_are_found(answered: Answered, report: SuiteReport) -> None:
    missed = [fault.what for fault in FAULTS if not _is_found(fault, answered)]
    report.figure("mpi_planted", len(FAULTS))
    report.figure("mpi_found", len(FAULTS) - len(missed))
    assert not missed


def _is_found(fault: Fault, answered: Answered) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fault.target, fault.name, fault.instead)
        return any(explain(found) is None for found in _found(answered))
