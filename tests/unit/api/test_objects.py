"""The maker of random objects that the generations test trusts."""

from __future__ import annotations

import random
from typing import Any

from tests.integration.api.objects import Maker, fields

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 4},
        "at": {"type": "string", "format": "date-time"},
        "n": {"type": "integer", "minimum": 3, "maximum": 5},
        "mode": {"type": "string", "enum": ["x", "y"]},
        "flag": {"type": "boolean"},
        "cpu": {"anyOf": [], "x-kubernetes-int-or-string": True, "pattern": "q"},
        "either": {"anyOf": [], "x-kubernetes-int-or-string": True},
        "set": {
            "type": "array",
            "x-kubernetes-list-type": "set",
            "minItems": 1,
            "items": {"type": "string", "enum": ["a"]},
        },
        "keyed": {
            "type": "array",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string", "enum": ["a"]}}},
        },
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "deep": {
            "type": "object",
            "minProperties": 1,
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        },
        "uri": {"type": "string"},
    },
    "required": ["name"],
    "x-always": ["deep"],
}


def make(count: int, seed: int = 1) -> tuple[list[Any], Maker]:
    maker = Maker(SCHEMA, random.Random(seed), {"uri": lambda _: "hf://x"})  # noqa: S311 no secret
    return [maker.make() for _ in range(count)], maker


def test_fields_are_listed_with_their_paths() -> None:
    assert {".name", ".keyed", ".keyed[].k", ".deep.a"} <= fields(SCHEMA)
    assert len(fields(SCHEMA)) == 15


def test_a_seed_gives_the_same_objects() -> None:
    assert make(20)[0] == make(20)[0]
    assert make(20)[0] != make(20, seed=2)[0]


def test_a_few_objects_visit_every_field_and_keep_the_limits() -> None:
    objects, maker = make(40)
    assert maker.coverage() == 1
    for one in objects:
        assert len(one["name"]) <= 4
        assert one["deep"]
        assert one.get("n", 3) in range(3, 6)
        assert one.get("mode", "x") in {"x", "y"}
        assert one.get("set", ["a"]) == ["a"]
        assert len(one.get("keyed", [1])) == 1
        assert one.get("uri", "hf://x") == "hf://x"


def test_nothing_is_covered_before_anything_is_made() -> None:
    assert make(0)[1].coverage() == 0
