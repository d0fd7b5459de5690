"""What a case is there to show is judged: once it came to its end, and only then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.conformance.cases import Case, Create
from tests.conformance.compare import Verdict
from tests.conformance.differences import DECLARED, explain
from tests.conformance.documents import runtime, train_job
from tests.conformance.drive import Run
from tests.conformance.planted import difference
from tests.conformance.shown import SHOWN, unshown
from tests.conformance.written import DEADLINES, WRITTEN

TAKEN = {"kind": "JobSet", "metadata": {"name": "job"}}
CASE = Case("taken", (Create(train_job()),), (runtime(), TAKEN), shows=("foreign-jobset ConfigMap",))
ACCEPTED = (Verdict(201), Verdict(201))
SNAPSHOT = replace(difference("ConfigMap job-runtime-snapshot", "", {"kind": "ConfigMap"}, "<absent>"), case=CASE)


def test_what_is_not_shown_is_a_fault() -> None:
    run = Run(CASE, 0, [ACCEPTED] * 3)
    assert [(one.place, one.path) for one in unshown(run)] == [(SHOWN, "foreign-jobset ConfigMap")]


def test_what_is_shown_is_none() -> None:
    assert unshown(Run(CASE, 0, [ACCEPTED] * 3, [SNAPSHOT])) == []


def test_what_is_shown_of_another_kind_of_object_is_not_it() -> None:
    case = replace(CASE, shows=("foreign-jobset JobSet",))
    assert [one.path for one in unshown(Run(case, 0, [ACCEPTED] * 3, [SNAPSHOT]))] == ["foreign-jobset JobSet"]


def test_a_case_that_did_not_come_to_its_end_need_not_show_it() -> None:
    assert unshown(Run(CASE, 0, [ACCEPTED] * 2)) == []


@pytest.mark.parametrize("name", sorted({name for case in (*WRITTEN, *DEADLINES) for name in case.shows}))
def test_cases_show_what_is_declared_and_nothing_explains_that_it_is_missing(name: str) -> None:
    assert name.partition(" ")[0] in {declared.id for declared in DECLARED}
    assert [one for case in (*WRITTEN, *DEADLINES) for one in unshown(Run(case, 0)) if explain(one)] == []
    ended = [Run(case, 0, [ACCEPTED] * (len(case.setup) + len(case.steps))) for case in WRITTEN if name in case.shows]
    assert [explain(one) for run in ended for one in unshown(run) if one.path == name] == [None] * len(ended)
