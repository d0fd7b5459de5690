"""The planter: a fault that does not fit is an error, one that does is what every holder of the function runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import trainplane
from tests.conformance.mutation.fault import Fault
from tests.conformance.mutation.faults import FAULTS
from tests.conformance.mutation.known import noted
from tests.conformance.mutation.plant import Garden, PlantError, changes
from trainplane.api import names
from trainplane.api.names import pod_hostname
from trainplane.render.demand import quantities

SOURCES = Path(str(trainplane.__file__)).parent
SOURCE = """\
PORT = 29500

class Node:
    kind = "node"

    def port(self, offset=0):
        return PORT + offset

def outer(one):
    def inner(two):
        return one + two
    return inner
"""


def fault(text: str, instead: str, module: str = "some.module") -> Fault:
    return Fault("planted", module, "does harm", text, instead)


HOST = fault("{job_index}-{pod_index}", "{pod_index}-{job_index}", "api.names")


@pytest.mark.parametrize(
    ("text", "instead", "why"),
    [
        ("PORT - offset", "0", "stands 0 times"),
        ("PORT", "0", "stands 2 times"),
        ("PORT + offset", "PORT +", "invalid syntax"),
        ("PORT + offset", "PORT\\\n + offset", "as many lines"),
        ("29500", "8080", "at import"),
        ('"node"', '"pod"', "at import"),
        ("offset=0", "offset=1", "at import"),
        ("return inner", "return  inner", "changes nothing"),
    ],
)
def test_a_fault_that_does_not_fit_is_an_error(text: str, instead: str, why: str) -> None:
    with pytest.raises(PlantError, match=why):
        list(changes(fault(text, instead), SOURCE))


def test_the_changed_function_and_what_holds_it_are_found() -> None:
    assert [code.co_name for code, _ in changes(fault("one + two", "one"), SOURCE)] == ["outer", "inner"]
    assert [code.co_name for code, _ in changes(fault("PORT + offset", "offset"), SOURCE)] == ["port"]


def test_a_planted_fault_runs_wherever_the_function_is_known_until_it_is_cleared() -> None:
    garden = Garden()
    try:
        assert garden.plant(HOST) == 1
        assert pod_hostname("job", "node", 1, 2) == names.pod_hostname("job", "node", 1, 2) == "job-node-2-1"
    finally:
        garden.clear()
    assert pod_hostname("job", "node", 1, 2) == "job-node-1-2"


def test_one_fault_takes_the_place_of_another() -> None:
    garden = Garden()
    overhead = fault("return {name: _quantity(name, amount)", "return {'x': _quantity(name, amount)", "render.demand")
    try:
        garden.plant(HOST)
        garden.plant(overhead)
        assert pod_hostname("job", "node", 1, 2) == "job-node-1-2"
        assert list(quantities({"cpu": "1"})) == ["x"]
    finally:
        garden.clear()


def test_a_fault_that_does_not_fit_leaves_nothing_planted() -> None:
    garden = Garden()
    garden.plant(HOST)
    with pytest.raises(PlantError):
        garden.plant(fault("no such text", "", "api.names"))
    assert pod_hostname("job", "node", 1, 2) == "job-node-1-2"


def test_every_fault_fits_the_source_and_has_an_id_of_its_own() -> None:
    for one in FAULTS:
        assert list(changes(one, SOURCES.joinpath(*one.module.split(".")).with_suffix(".py").read_text())), one
    assert len({one.id for one in FAULTS}) == len(FAULTS) >= 100


def test_what_a_run_found_is_noted_in_the_order_of_faults() -> None:
    first, second = FAULTS[0].id, FAULTS[1].id
    a, b = ({"case": name, "place": "verdict code"} for name in "ab")
    rows: list[dict[str, Any]] = [{"fault": second, **b, "seconds": 1.5}, {"fault": first}, {"fault": "gone", **b}]
    assert list(noted({"gone": a, first: a}, rows).items()) == [(first, a), (second, b)]
