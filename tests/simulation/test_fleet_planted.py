"""It finds things between clusters too: each fault that is put into the hub server breaks a promise of a fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.simulation.fleet.history import draw
from tests.simulation.fleet.machine import run
from tests.simulation.fleet.planted import FLEET
from tests.simulation.planted import PLANTED
from tests.simulation.planted_search import A_FLEET

if TYPE_CHECKING:
    from tests.simulation.planting import Planted
    from tests.suite import SuiteReport


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", FLEET, ids=lambda fault: fault.name)
def test_a_fault_that_is_put_into_a_fleet_is_found(fault: Planted, report: SuiteReport) -> None:
    A_FLEET.must_find(fault, report)


def test_no_two_of_all_are_alike() -> None:
    assert len({one.name for one in (*PLANTED, *FLEET)}) == len(PLANTED) + len(FLEET)


def test_what_is_kept_of_the_last_search_is_about_faults_of_a_fleet_that_are_there() -> None:
    assert A_FLEET.finding.keys() <= {one.name for one in FLEET}


@pytest.mark.parametrize("seed", sorted(set(A_FLEET.finding.values())))
def test_what_finds_a_fault_of_a_fleet_finds_nothing_without_one(seed: int) -> None:
    assert run(draw(seed)).violations == ()
