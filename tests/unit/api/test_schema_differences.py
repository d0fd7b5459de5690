from __future__ import annotations

from typing import Any

import pytest

from tests.schema_differences import Difference, Narrowing, differences, narrowings, normal

BASE: dict[str, Any] = {
    "type": "object",
    "required": ["a"],
    "properties": {
        "a": {"type": "string", "maxLength": 5},
        "l": {"type": "array", "items": {"type": "integer", "minimum": 1}},
        "m": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


def changed(path: list[str], **keywords: Any) -> dict[str, Any]:
    """Return BASE with keywords set at a path; None removes one."""

    def edit(schema: dict[str, Any], rest: list[str]) -> dict[str, Any]:
        if rest:
            return {**schema, rest[0]: edit(schema[rest[0]], rest[1:])}
        return {key: value for key, value in (schema | keywords).items() if value is not None}

    return edit(BASE, path)


def test_words_and_order_do_not_count() -> None:
    left = {"description": "x", "required": ["b", "a"], "x-kubernetes-validations": [{"rule": "a  b", "message": "m"}]}
    right = {"required": ["a", "b"], "x-kubernetes-validations": [{"rule": "a b", "message": "n"}]}
    assert differences(left, right) == []


def test_a_property_called_description_counts() -> None:
    schema = {"properties": {"description": {"type": "string"}}}
    assert normal(schema) == schema
    assert differences(schema, {"properties": {}}) == [
        Difference("description", "property", {"type": "string"}, "absent")
    ]


@pytest.mark.parametrize(
    ("theirs", "found"),
    [
        (BASE, []),
        (changed(["properties", "a"], maxLength=6), [Difference("a", "maxLength", 5, 6)]),
        (changed(["properties", "a"], maxLength=None), [Difference("a", "maxLength", 5, "absent")]),
        (changed(["properties", "l", "items"], minimum=2), [Difference("l[]", "minimum", 1, 2)]),
        (
            changed(["properties", "m", "additionalProperties"], type="integer"),
            [Difference("m{}", "type", "string", "integer")],
        ),
        (changed([], required=None), [Difference("", "required", ["a"], "absent")]),
        (changed(["properties"], a=None), [Difference("a", "property", {"type": "string", "maxLength": 5}, "absent")]),
        (changed(["properties"], z={"type": "string"}), [Difference("z", "property", "absent", {"type": "string"})]),
        (
            changed(["properties", "l"], items=None),
            [Difference("l[]", "property", {"type": "integer", "minimum": 1}, "absent")],
        ),
    ],
)
def test_a_difference_names_its_place(theirs: dict[str, Any], found: list[Difference]) -> None:
    assert differences(BASE, theirs) == found


@pytest.mark.parametrize(
    ("ours", "found"),
    [
        (BASE, []),
        (changed(["properties"], z={"type": "string"}), []),
        (changed(["properties", "a"], maxLength=6), []),
        (changed(["properties", "a"], maxLength=None), []),
        (changed([], required=None), []),
        (changed(["properties", "a"], maxLength=4), [Narrowing("a", "maxLength 5 became 4")]),
        (changed(["properties", "a"], minLength=1), [Narrowing("a", "minLength absent became 1")]),
        (changed(["properties", "l", "items"], minimum=2), [Narrowing("l[]", "minimum 1 became 2")]),
        (changed(["properties", "l", "items"], minimum=0), []),
        (changed([], required=["a", "l"]), [Narrowing("", "l became required")]),
        (changed(["properties"], a=None), [Narrowing("a", "is not known")]),
        (changed(["properties", "a"], type="integer"), [Narrowing("a", "type string is refused")]),
        (changed(["properties", "a"], type=None, **{"x-kubernetes-int-or-string": True}), []),
        (changed(["properties", "a"], pattern="x"), [Narrowing("a", "pattern absent became x")]),
        (changed(["properties", "a"], enum=["x"]), [Narrowing("a", "enum lost values")]),
        (
            changed(["properties", "a"], **{"x-kubernetes-validations": [{"rule": "r", "message": "m"}]}),
            [Narrowing("a", "rule r")],
        ),
        (
            changed(["properties", "l"], **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
            [Narrowing("l", "entries are told apart in another way")],
        ),
        (changed(["properties", "l"], **{"x-kubernetes-list-type": "atomic"}), []),
    ],
)
def test_a_narrowing_is_what_may_be_refused(ours: dict[str, Any], found: list[Narrowing]) -> None:
    assert narrowings(ours, BASE) == found


def test_an_enum_may_gain_values() -> None:
    older = changed(["properties", "a"], enum=["x"])
    assert narrowings(changed(["properties", "a"], enum=["x", "y"]), older) == []
    assert narrowings(BASE, older) == []


def test_a_rule_that_both_have_is_none() -> None:
    rule = {"x-kubernetes-validations": [{"rule": "r", "message": "m"}]}
    assert narrowings(changed([], **rule), changed([], **rule)) == []
