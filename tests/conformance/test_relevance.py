"""Which cases are asked of a planted fault, in what order; no unit test, for cases read the reference's manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conformance.mutation.faults import FAULTS
from tests.conformance.mutation.known import FOUND_BY
from tests.conformance.mutation.relevance import by_relevance
from tests.conformance.written import WRITTEN

if TYPE_CHECKING:
    from tests.conformance.mutation.fault import Fault


def test_of_every_fault_it_is_known_which_case_finds_it_and_that_is_asked_first() -> None:
    assert list(FOUND_BY) == [one.id for one in FAULTS]
    assert [by_relevance(one)[0][0].id for one in FAULTS] == [found["case"] for found in FOUND_BY.values()]


@pytest.mark.parametrize("one", FAULTS[::20], ids=str)
def test_every_case_is_asked_of_a_fault_once(one: Fault) -> None:
    cases = [case for batch in by_relevance(one) for case in batch]
    assert {case.id for case in WRITTEN} <= {case.id for case in cases}
    assert len({case.id for case in cases}) == len(cases)
