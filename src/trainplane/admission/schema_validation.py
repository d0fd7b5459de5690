"""Whether a tree has the form that a CRD's schema asks for, told as a person would, with the part of the tree.

It knows the keywords that our schemas use. Rules of CEL are not run: `rules` has each of them in Python. With what is
stored (`old`) it runs those that hold a field fixed, too.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from trainplane.admission.rules import RULES, RULES_OF_CHANGE, squeezed
from trainplane.api import tree as trees
from trainplane.api.quantity import advise

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from trainplane.api.tree import Tree

Path: TypeAlias = "tuple[str | int, ...]"

_TYPES: Final = {
    "object": (dict, "fields"),
    "array": (list, "a list"),
    "string": (str, "a text"),
    "integer": (int, "a whole number"),
    "number": (int | float, "a number"),
    "boolean": (bool, "true or false"),
}
_RANGES: Final = {"int32": range(-(2**31), 2**31), "int64": range(-(2**63), 2**63)}


@dataclass(frozen=True, slots=True)
class Problem:
    """One part of a tree that the schema does not allow."""

    path: Path
    text: str
    is_misshapen: bool = False
    """Whether the part has another type than whoever reads it counts on."""


def judge(value: Any, schema: Tree, path: Path = (), *, old: Any = None) -> Iterator[Problem]:
    """Yield every problem of a value. What has the wrong type is not looked into, nor judged by rules."""
    wrong = _wrong_type(value, schema)
    if wrong:
        yield Problem(path, wrong, is_misshapen=True)
        return
    problems = list(_judge_form(value, schema, path, old))
    yield from problems
    if any(problem.is_misshapen for problem in problems):
        return  # a rule counts on the form of what it reads, here as in the API server
    for rule in schema.get("x-kubernetes-validations", ()):
        text = squeezed(rule["rule"])
        keeps = RULES_OF_CHANGE.get(text)
        if not RULES.get(text, _always)(value) or (keeps and old is not None and not keeps(value, old)):
            yield Problem(path, rule["message"])


def _always(_: Any) -> bool:
    return True


def _judge_form(value: Any, schema: Tree, path: Path, old: Any) -> Iterator[Problem]:
    if isinstance(value, dict):
        yield from _judge_object(value, schema, path, old if isinstance(old, dict) else {})
    elif isinstance(value, list):
        yield from _judge_list(value, schema, path, old if isinstance(old, list) else [])
    elif isinstance(value, str):
        yield from _judge_text(value, schema, path)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from _judge_number(value, schema, path)
    if "enum" in schema and value not in schema["enum"]:
        yield Problem(path, f"must be {_either(schema['enum'])}, not {value!r}")


def _wrong_type(value: Any, schema: Tree) -> str:
    """Return what is wrong with the type of a value; empty if nothing is."""
    if value is None:
        return "has no value: write one, or take the field out"
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, float):
            return f'must be a whole number or a text: write "{value}" in quotes'
        is_right, name = isinstance(value, int | str), "a number or a text"
    else:
        kind, name = _TYPES[schema["type"]]
        is_right = isinstance(value, kind)
    if is_right and (not isinstance(value, bool) or schema.get("type") == "boolean"):
        return ""
    return f"must be {name}, not {_name(value)}{_hint(value, schema)}"


def _judge_object(value: Tree, schema: Tree, path: Path, old: Tree) -> Iterator[Problem]:
    known = schema.get("properties")
    others = schema.get("additionalProperties")
    for name in schema.get("required", ()):
        if name not in value:
            yield Problem(path, f"{name} is missing")
    if len(value) < schema.get("minProperties", 0):
        yield Problem(path, "is empty")
    for name, below in value.items():
        if known is not None and name in known:
            yield from judge(below, known[name], (*path, name), old=old.get(name))
        elif isinstance(others, dict):
            yield from judge(below, others, (*path, name), old=old.get(name))
        elif known is not None:
            yield Problem((*path, name), f"there is no such field{_meant(name, known)}")


def _judge_list(value: list[Any], schema: Tree, path: Path, old: list[Any]) -> Iterator[Problem]:
    if len(value) > schema.get("maxItems", len(value)):
        yield Problem(path, f"has {len(value)} entries, and may have {schema['maxItems']}")
    if len(value) < schema.get("minItems", 0):
        yield Problem(path, f"must have {schema['minItems']} or more entries")
    keys = schema.get("x-kubernetes-list-map-keys")
    for index, below in enumerate(value):
        yield from judge(below, schema["items"], (*path, index), old=_former(below, old, keys) if keys else None)
    yield from _judge_sameness(value, schema, path)


def _former(entry: Any, old: list[Any], keys: list[str]) -> Any:
    """Return the entry that is stored under the same keys; lists without keys have no memory."""
    return next((one for one in old if all(trees.get(one, key) == trees.get(entry, key) for key in keys)), None)


def _judge_sameness(value: list[Any], schema: Tree, path: Path) -> Iterator[Problem]:
    """Yield entries that are the same as an earlier one in what tells entries of the list apart."""
    kind = schema.get("x-kubernetes-list-type")
    if kind not in {"map", "set"}:
        return
    seen: set[Hashable] = set()
    for index, entry in enumerate(value):
        mark: Any = entry
        if kind == "map":
            keys, fields = schema["x-kubernetes-list-map-keys"], schema["items"]["properties"]
            if not isinstance(entry, dict) or any(name not in entry and "default" not in fields[name] for name in keys):
                continue
            mark = {name: entry.get(name, fields[name].get("default")) for name in keys}
        known = trees.hashable(mark)
        if known in seen:
            said = " and ".join(f"{name} {value}" for name, value in mark.items()) if kind == "map" else repr(mark)
            yield Problem((*path, index), f"{said} is there twice")
        seen.add(known)


def _judge_text(value: str, schema: Tree, path: Path) -> Iterator[Problem]:
    if len(value) > schema.get("maxLength", len(value)):
        yield Problem(path, f"has {len(value)} characters, and may have {schema['maxLength']}")
    if len(value) < schema.get("minLength", 0):
        yield Problem(path, "must not be empty")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        is_amount = schema.get("x-kubernetes-int-or-string")
        form = f"is no amount: {advise(value)}" if is_amount else "does not have the form it must have"
        yield Problem(path, f"{value!r} {form}")


def _judge_number(value: int, schema: Tree, path: Path) -> Iterator[Problem]:
    if value not in _RANGES.get(schema.get("format", ""), (value,)):
        yield Problem(path, f"{value} is too large a number")
    if value < schema.get("minimum", value):
        yield Problem(path, f"must be {schema['minimum']} or more, not {value}")
    if value > schema.get("maximum", value):
        yield Problem(path, f"must be {schema['maximum']} or less, not {value}")


def _name(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    for kind, name in _TYPES.values():
        if isinstance(value, kind):
            return name
    return type(value).__name__


def _hint(value: Any, schema: Tree) -> str:
    wanted = schema.get("type")
    if wanted == "string" and isinstance(value, bool | int | float):
        return ": put it in quotes"
    if wanted in {"integer", "number"} and isinstance(value, str) and value.lstrip("-").isdecimal():
        return ": take the quotes away"
    if wanted == "array" and isinstance(value, dict):
        return ": begin its first line with `- `"
    return ""


def _meant(name: str, known: Tree) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f": did you mean {close[0]}?" if close else ""


def _either(values: list[Any]) -> str:
    return " or ".join(repr(value) for value in values)
