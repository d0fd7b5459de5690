from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainplane.api import tree

TREE: dict[str, Any] = {
    "spec": {"jobs": [{"name": "a", "n": 1}, {"name": "b"}], "unknown": {"deep": [1, 2]}},
    "other": {"kept": True},
}

trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((), TREE),
        (("spec", "jobs", 0, "n"), 1),
        (("spec", "jobs", -1, "name"), "b"),
        (("spec", "jobs", ("name", "a"), "n"), 1),
        (("spec", "jobs", ("name", "z"), "n"), None),
        (("spec", "jobs", 5), None),
        (("spec", "jobs", "name"), None),
        (("missing", "deeper"), None),
        (("other", "kept", "deeper"), None),
        (("other", 0), None),
    ],
)
def test_get(path: tuple[tree.Step, ...], value: object) -> None:
    assert tree.get(TREE, *path) == value


def test_put_makes_what_is_missing() -> None:
    assert tree.put({}, "a", "b", value=1) == {"a": {"b": 1}}
    assert tree.put({"a": None}, "a", "b", value=1) == {"a": {"b": 1}}
    assert tree.put({}, "jobs", ("name", "x"), "n", value=1) == {"jobs": [{"name": "x", "n": 1}]}


def test_put_replaces_a_keyed_entry_in_its_place() -> None:
    changed = tree.put(TREE, "spec", "jobs", ("name", "a"), "n", value=2)
    assert changed["spec"]["jobs"] == [{"name": "a", "n": 2}, {"name": "b"}]


def test_put_shares_what_it_did_not_touch_and_changes_nothing() -> None:
    before = tree.copy(TREE)
    changed = tree.put(TREE, "spec", "jobs", 1, "n", value=2)
    assert before == TREE
    assert changed["other"] is TREE["other"]
    assert changed["spec"]["unknown"] is TREE["spec"]["unknown"]
    assert changed["spec"]["jobs"][0] is TREE["spec"]["jobs"][0]


@pytest.mark.parametrize(
    ("path", "problem"), [(("spec", "jobs", 9), "none at index 9"), (("other", "kept", "x"), "dict")]
)
def test_put_refuses_a_path_that_leads_nowhere(path: tuple[tree.Step, ...], problem: str) -> None:
    with pytest.raises(LookupError, match=problem):
        tree.put(TREE, *path, value=1)


def test_drop() -> None:
    assert tree.drop(TREE, "spec", "jobs", ("name", "a"))["spec"]["jobs"] == [{"name": "b"}]
    assert tree.drop(TREE, "spec", "jobs", 0, "n")["spec"]["jobs"] == [{"name": "a"}, {"name": "b"}]
    assert "other" not in tree.drop(TREE, "other")
    assert tree.drop(TREE, "spec", "missing", "deeper") == TREE
    assert "other" in TREE


@given(trees)
def test_copy_is_equal_and_shares_nothing(original: Any) -> None:
    copied = tree.copy(original)
    assert copied == original
    assert not shared(copied) & shared(original)


def shared(value: Any) -> set[int]:
    if isinstance(value, dict):
        return {id(value)}.union(*(shared(inner) for inner in value.values()))
    if isinstance(value, list):
        return {id(value)}.union(*(shared(inner) for inner in value))
    return set()


@given(trees, st.text("abc", min_size=1, max_size=2), trees)
def test_what_was_put_is_there_and_drops_again(original: Any, key: str, value: Any) -> None:
    whole = {"x": original}
    changed = tree.put(whole, "new", key, value=value)
    assert tree.get(changed, "new", key) == value
    assert changed["x"] is original
    assert tree.drop(changed, "new") == whole


def test_without_nulls_drops_fields_not_entries() -> None:
    assert tree.without_nulls({"a": None, "b": [None, {"c": None}]}) == {"b": [None, {}]}


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "x", [], {}, [1], [{"a": 1}], {"a": 1}])
def test_what_others_wrote_is_read_as_what_it_ought_to_be(value: Any) -> None:
    doc = {"part": value}
    assert tree.fields(doc, "part") == (value if isinstance(value, dict) else {})
    assert tree.entries(doc, "part") == ([{"a": 1}] if value == [{"a": 1}] else [])
    assert tree.text(doc, "part") == (value if isinstance(value, str) else None)
    assert tree.number(doc, "part") == (1 if value == 1 and value is not True else None)
