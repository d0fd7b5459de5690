"""Operations that lead from one tree to another, applied by a hand of the test's own."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainplane.admission.jsonpatch import identical, json_patch
from trainplane.api import tree as trees

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2, width=16) | st.text("ab~/0", max_size=3),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text("ab~/01", max_size=3), inner, max_size=4),
    max_leaves=20,
)


def applied(document: Any, operations: list[dict[str, Any]]) -> Any:
    """Apply operations as RFC 6902 and RFC 6901 say, strictly: what is removed or replaced must be there."""
    document = copy.deepcopy(document)
    for operation in operations:
        steps = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]]
        if not steps:
            assert operation["op"] == "replace"
            document = operation["value"]
            continue
        place = document
        for step in steps[:-1]:
            place = place[int(step) if isinstance(place, list) else step]
        last: Any = int(steps[-1]) if isinstance(place, list) else steps[-1]
        if operation["op"] == "remove":
            del place[last]
        elif operation["op"] == "replace":
            assert last in place if isinstance(place, dict) else last < len(place)
            place[last] = operation["value"]
        elif isinstance(place, list):
            assert 0 <= last <= len(place)
            place.insert(last, operation["value"])
        else:
            assert last not in place
            place[last] = operation["value"]
    return document


@given(JSON, JSON)
def test_applying_gives_after(before: Any, after: Any) -> None:
    kept = copy.deepcopy(before)
    assert identical(applied(before, json_patch(before, after)), after)
    assert identical(before, kept)


@given(JSON)
def test_what_is_the_same_needs_nothing(tree: Any) -> None:
    assert json_patch(tree, copy.deepcopy(tree)) == []


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        ({"a": 1}, {"a": 2}, [{"op": "replace", "path": "/a", "value": 2}]),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        ({}, {"x/y~z": {}}, [{"op": "add", "path": "/x~1y~0z", "value": {}}]),
        ({"a": 1, "b": 2}, {"b": 2}, [{"op": "remove", "path": "/a"}]),
        ([1, 2, 3], [0, 1, 2, 3], [{"op": "add", "path": "/0", "value": 0}]),
        ([1, 2, 3], [1, 3], [{"op": "remove", "path": "/1"}]),
        ([1, 2, 3, 4], [4], [{"op": "remove", "path": f"/{place}"} for place in (2, 1, 0)]),
        ([1, {"a": 1}, 3], [1, {"a": 2}, 3], [{"op": "replace", "path": "/1/a", "value": 2}]),
        ([1], {"a": 1}, [{"op": "replace", "path": "", "value": {"a": 1}}]),
        ({"a": None}, {}, [{"op": "remove", "path": "/a"}]),
    ],
)
def test_only_what_differs_is_named(before: Any, after: Any, operations: list[dict[str, Any]]) -> None:
    assert json_patch(before, after) == operations


def test_shared_parts_are_not_looked_into() -> None:
    class Guarded(dict[str, Any]):
        def items(self) -> Any:
            raise AssertionError("looked into")

    shared = Guarded(a=1)
    before = {"metadata": shared, "spec": {"suspend": False}}
    after = trees.put(before, "spec", "suspend", value=True)
    assert json_patch(before, after) == [{"op": "replace", "path": "/spec/suspend", "value": True}]


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (0, False), (1, 1.0), ({"a": [1]}, {"a": [True]}), ([], {}), ("", None)]
)
def test_values_of_another_type_are_not_identical(one: Any, other: Any) -> None:
    assert not identical(one, other)
    assert identical(one, copy.deepcopy(one))
