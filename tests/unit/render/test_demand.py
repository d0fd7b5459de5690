from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainplane.api.errors import QuantityError
from trainplane.api.quantity import Quantity
from trainplane.render.demand import pod_requests

if TYPE_CHECKING:
    from trainplane.api.tree import Tree


def container(*, always: bool = False, limits: Tree | None = None, **requests: Any) -> Tree:
    made: Tree = {"name": "c", "resources": {"requests": requests, "limits": limits or {}}}
    return {**made, "restartPolicy": "Always"} if always else made


def written(spec: Tree) -> dict[str, str]:
    return {name: str(amount) for name, amount in pod_requests(spec).items()}


def test_containers_add_up() -> None:
    spec = {"containers": [container(cpu="500m", memory="1Gi"), container(cpu=1)]}
    assert written(spec) == {"cpu": "1500m", "memory": "1Gi"}


def test_a_limit_without_a_request_is_a_request() -> None:
    spec = {"containers": [container(limits={"nvidia.com/gpu": 8, "cpu": "4"}, cpu="2")]}
    assert written(spec) == {"cpu": "2", "nvidia.com/gpu": "8"}


def test_the_largest_init_container_counts_if_it_is_larger_than_all_that_follows() -> None:
    spec = {"initContainers": [container(cpu=3), container(memory="4Gi")], "containers": [container(cpu=2, memory=1)]}
    assert written(spec) == {"cpu": "3", "memory": "4Gi"}


def test_a_sidecar_runs_beside_what_comes_after_it() -> None:
    starting = [container(cpu=4), container(cpu=1, always=True), container(cpu=3.5)]
    assert written({"initContainers": starting, "containers": [container(cpu=2)]}) == {"cpu": "4500m"}
    assert written({"initContainers": starting, "containers": [container(cpu=5)]}) == {"cpu": "6"}


def test_the_pods_own_word_outranks_and_overhead_comes_on_top() -> None:
    spec = {
        "containers": [container(cpu=1, memory="1Gi")],
        "resources": {"requests": {"cpu": 4}},
        "overhead": {"memory": "1Gi"},
    }
    assert written(spec) == {"cpu": "4", "memory": "2Gi"}


def test_nothing_needs_nothing() -> None:
    assert pod_requests({}) == {}


def test_what_is_no_quantity_is_named() -> None:
    with pytest.raises(QuantityError, match="cpu"):
        pod_requests({"containers": [container(cpu="many")]})


@given(st.lists(st.integers(0, 9), max_size=4), st.lists(st.integers(0, 9), max_size=4))
def test_a_pod_needs_at_least_what_each_of_its_containers_does(first: list[int], then: list[int]) -> None:
    spec = {"initContainers": [container(cpu=n) for n in first], "containers": [container(cpu=n) for n in then]}
    needed = pod_requests(spec).get("cpu", Quantity.of(0))
    assert needed == Quantity.of(max([sum(then), *first]))
