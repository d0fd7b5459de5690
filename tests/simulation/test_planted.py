"""It finds things: each fault that is put into operator or runtime breaks a promise in some history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.simulation.history import draw
from tests.simulation.machine import run
from tests.simulation.planted import FINDING, PLANTED
from tests.simulation.planted_search import ONE_CLUSTER

if TYPE_CHECKING:
    from tests.simulation.planting import Planted
    from tests.suite import SuiteReport


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.name)
def test_a_fault_that_is_put_in_is_found(fault: Planted, report: SuiteReport) -> None:
    ONE_CLUSTER.must_find(fault, report)


def test_no_two_are_alike() -> None:
    assert len({one.name for one in PLANTED}) == len(PLANTED)


def test_what_is_kept_of_the_last_search_is_about_faults_that_are_there() -> None:
    assert FINDING.keys() <= {one.name for one in PLANTED}


@pytest.mark.parametrize("seed", sorted(set(FINDING.values())))
def test_what_finds_a_fault_finds_nothing_without_one(seed: int) -> None:
    assert run(draw(seed)).violations == ()
