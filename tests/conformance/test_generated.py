"""Generated cases: each is the same whenever it is asked for, and together they are wide."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.conformance import context as it
from tests.conformance.cases import Change, Remove, Report
from tests.conformance.generated import collect, generate
from tests.conformance.generated_runtimes import FRAMEWORKS

if TYPE_CHECKING:
    from tests.conformance.cases import Case

NUMBER = 60


def test_a_case_is_the_same_alone_and_among_others() -> None:
    cases = collect(12, of=7)
    assert [generate(number, of=7) for number in (11, 3)] == [cases[11], cases[3]]


def test_another_seed_has_other_cases() -> None:
    assert not [one for one, other in zip(collect(6, of=1), collect(6, of=2), strict=True) if one.setup == other.setup]


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return collect(NUMBER)


def test_frameworks_take_turns(cases: list[Case]) -> None:
    named = [next((name for name in FRAMEWORKS if name in it.policy(case)), "plain") for case in cases]
    assert Counter(named) == dict.fromkeys(FRAMEWORKS, NUMBER // len(FRAMEWORKS))


def test_cases_are_wide(cases: list[Case]) -> None:
    kinds = Counter(it.runtime(case)["kind"] for case in cases)
    steps = [step for case in cases for step in case.steps]
    ends = {one["type"] for step in steps if isinstance(step, Report) for one in step.status.get("conditions", ())}
    assert sum(it.has_trainer(case) for case in cases) > NUMBER / 2
    assert min(kinds["TrainingRuntime"], kinds["ClusterTrainingRuntime"]) > NUMBER / 10
    assert sum(len(case.steps) for case in cases) > 4 * NUMBER
    assert ends == {"Completed", "Failed"}
    assert {Change, Report, Remove} <= {type(step) for step in steps}
