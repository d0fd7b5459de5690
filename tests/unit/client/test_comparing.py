"""What differs between two documents, by the names that people know."""

from __future__ import annotations

from typing import Any

import pytest

from trainplane.client.comparing import changes
from trainplane.client.types.renderings import ABSENT
from trainplane.render.findings import written


def told(before: Any, after: Any) -> list[tuple[str, Any, Any]]:
    return [(written(one.path), one.before, one.after) for one in changes(before, after)]


def test_equal_documents_do_not_differ() -> None:
    tree = {"a": [{"name": "x", "b": [1, {}]}], "c": None}
    assert told(tree, {"c": None, "a": [{"name": "x", "b": [1, {}]}]}) == []


def test_values_that_changed_came_or_went() -> None:
    found = told({"same": 1, "changed": 1, "gone": {"a": 1}}, {"same": 1, "changed": 2, "new": [1]})
    assert found == [("changed", 1, 2), ("gone", {"a": 1}, ABSENT), ("new", ABSENT, [1])]


def test_entries_with_names_are_compared_by_them_wherever_they_stand() -> None:
    before = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    after = {"env": [{"name": "B", "value": "3"}, {"name": "A", "value": "1"}]}
    assert told(before, after) == [("env[B].value", "2", "3")]


def test_entries_without_names_are_compared_by_their_place() -> None:
    assert told([{"a": 1}, {"a": 2}], [{"a": 1}, {"a": 3}]) == [("[1].a", 2, 3)]


def test_words_of_a_command_are_one_value() -> None:
    assert told({"command": ["a", "b"]}, {"command": ["a", "c"]}) == [("command", ["a", "b"], ["a", "c"])]


@pytest.mark.parametrize(("before", "after"), [({"a": 1}, [1]), ({}, {"a": 1}), (0, None), ("1", 1)])
def test_what_is_of_another_kind_differs_as_a_whole(before: Any, after: Any) -> None:
    assert told(before, after) == [("", before, after)]


def test_two_entries_of_one_name_are_told_apart_by_their_place() -> None:
    assert told([{"name": "x"}, {"name": "x"}], [{"name": "x"}, {"name": "y"}]) != []
