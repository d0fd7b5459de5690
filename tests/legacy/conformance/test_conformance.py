"""training-operator v1.9.3's own reconcilers and our core, asked about the same: what differs is declared."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import pytest

from tests.day import seed
from tests.legacy.conformance.cases import V1, Case, draw
from tests.legacy.conformance.differences import DECLARED, Difference, differences, explain
from tests.legacy.conformance.looks import ask_oracle, ask_ours, recorded_answers
from tests.legacy.conformance.planted import FAULTS
from tests.size import sized

if TYPE_CHECKING:
    from tests.legacy.conformance.cases import Tree
    from tests.suite import SuiteReport

USUAL: Final = 250
"""How many cases a run draws by default. The answers of the old operator to these are recorded."""
GENERATED: Final = sized(USUAL, full=1000)
SEED: Final = seed() if os.environ.get("SEED") else 0
"""Which cases are drawn: those of 0, also with FULL=1; SEED=N and SEED=day draw others, and ask the old operator."""
APART: Final = 1_000_000
SHOWING: Final = {
    "wait": 15,
    "logs": 8,
    "stopped-counts": 8,
    "withdrawn": 7,
    "end-first": 1,
    "beyond": 1,
    "earlier-run": 17,
    "restart": 26,
    "in-passing": 52,
    "completion": 58,
    "leader": 146,
    "final": 341,
    "ran": 161,
    "nobody": 1551,
    "whoever": 241,
    "steady": 30,
    "selector": 1293,
    "managed": 134,
    "quiet": 0,
    "unscaled": 185,
    "services": 16,
    "no-server": 316,
}
"""For each cause a case that shows it."""
BY_CHANCE: Final = {"gang"}
"""Causes that show themselves only if Go's maps are walked in a certain order."""


@dataclass(frozen=True)
class Asked:
    """A case and every answer that the old operator may give to it."""

    case: Case
    answers: list[Tree]
    now: datetime

    def found(self) -> list[Difference]:
        """Return how we differ from the answer that is nearest to ours."""
        ours = ask_ours(self.case, self.now)
        each = [differences(self.case, answer, ours) for answer in self.answers]
        return min(each, key=lambda found: sum(explain(one) is None for one in found))

    def unexplained(self) -> list[Difference]:
        """Return those differences that nothing declares."""
        return [one for one in self.found() if explain(one) is None]


@pytest.fixture(scope="module")
def recorded() -> dict[int, Asked]:
    """Return the cases that are recorded, by number."""
    now = datetime.now(UTC)
    answers = recorded_answers(sorted({*range(USUAL), *SHOWING.values()}), now)
    return {number: Asked(draw(number, now), given, now) for number, given in answers.items()}


@pytest.fixture(scope="module")
def drawn(recorded: dict[int, Asked]) -> list[Asked]:
    numbers = [SEED * APART + number for number in range(GENERATED)]
    now = datetime.now(UTC)
    others = [draw(number, now) for number in numbers if number not in recorded]
    answers = ask_oracle(others) if others else []
    asked = {case.number: Asked(case, given, now) for case, given in zip(others, answers, strict=True)} | recorded
    return [asked[number] for number in numbers]


@pytest.fixture(scope="module")
def showing(recorded: dict[int, Asked]) -> list[Asked]:
    return [recorded[number] for number in SHOWING.values()]


def test_what_we_do_is_what_the_old_operator_does_or_is_declared(drawn: list[Asked], report: SuiteReport) -> None:
    faults = [fault for asked in drawn for fault in asked.unexplained()]
    report.figure("cases", report.figures.get("cases", 0) + len(drawn))
    report.figure("unexplained", report.figures.get("unexplained", 0) + len(faults))
    assert not faults, f"{len(faults)} unexplained differences:\n" + "\n".join(map(str, faults[:20]))
    assert {asked.case.kind.name for asked in drawn} == {kind.name for kind in V1}


def test_most_cases_need_no_explanation_of_their_pods(drawn: list[Asked]) -> None:
    made = [asked for asked in drawn if any(answer["pods"] for answer in asked.answers)]
    equal = [asked for asked in made if not [one for one in asked.found() if one.path.startswith("pods.")]]
    assert len(made) > 0.2 * len(drawn)
    assert len(equal) > 0.5 * len(made)


def test_every_declared_cause_still_has_a_case(showing: list[Asked], report: SuiteReport) -> None:
    assert {*SHOWING} == {*DECLARED} - BY_CHANCE
    for (cause, number), asked in zip(SHOWING.items(), showing, strict=True):
        causes = [explain(one) for one in asked.found()]
        report.row(cause=cause, meaning=DECLARED[cause][0], case=number, seen=causes.count(cause))
        assert cause in causes, f"case {number} no longer shows {cause!r}: {causes}"
        assert None not in causes


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(
    fault: str, drawn: list[Asked], monkeypatch: pytest.MonkeyPatch, report: SuiteReport
) -> None:
    FAULTS[fault](monkeypatch)
    is_found = any(asked.unexplained() for asked in drawn)
    report.figure("planted", report.figures.get("planted", 0) + 1)
    report.figure("found", report.figures.get("found", 0) + is_found)
    assert is_found
