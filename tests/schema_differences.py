"""How two schemas differ, and what one accepts that the other refuses. Words (descriptions, messages) do not count.

Two questions about our CRDs are asked of pure functions, so that a test can answer with a list that a person can read:

- `differences`: is the core the reference's? One line for each place where it is not.
- `narrowings`: does ours accept all that an older release accepts? One line for each place where it may not. It errs on
  the safe side: a CEL rule that the older schema does not have counts, whatever it says.

Both name a place as users do: `spec.trainer.args[]` is an entry of a list, `metadata.labels{}` a value of a map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

Schema = dict[str, Any]

ABSENT = "absent"


class Difference(NamedTuple):
    """One place where two schemas say different things."""

    path: str
    key: str
    """The keyword of the schema, or `property` if a whole field is absent on one side."""
    ours: Any
    theirs: Any


def normal(schema: Any) -> Any:
    """Return a schema without words, with everything whose order means nothing sorted."""
    if isinstance(schema, list):
        return [normal(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {}
    for key, value in schema.items():
        if key == "description" and isinstance(value, str):
            continue
        if key == "x-kubernetes-validations" and isinstance(value, list):
            result[key] = sorted(" ".join(rule["rule"].split()) for rule in value)
        elif key in {"required", "enum"} and isinstance(value, list):
            result[key] = sorted(value)
        else:
            result[key] = normal(value)
    return result


def differences(ours: Schema, theirs: Schema) -> list[Difference]:
    """Return every place where two schemas differ, sorted by path."""
    found = _differences(normal(ours), normal(theirs), "")
    return sorted((one._replace(path=one.path.lstrip(".")) for one in found), key=lambda one: (one.path, one.key))


def _differences(ours: Schema, theirs: Schema, path: str) -> Iterator[Difference]:
    for key in sorted((ours.keys() | theirs.keys()) - _NESTED):
        if ours.get(key, ABSENT) != theirs.get(key, ABSENT):
            yield Difference(path, key, ours.get(key, ABSENT), theirs.get(key, ABSENT))
    for step, left, right in _children(ours, theirs):
        if left is None or right is None:
            yield Difference(path + step, "property", *(ABSENT if side is None else side for side in (left, right)))
        else:
            yield from _differences(left, right, path + step)


_NESTED = frozenset({"properties", "items", "additionalProperties"})


def _children(ours: Schema, theirs: Schema) -> Iterator[tuple[str, Schema | None, Schema | None]]:
    """Pair what two schemas nest, by the step that leads there."""
    left, right = ours.get("properties", {}), theirs.get("properties", {})
    for name in sorted(left.keys() | right.keys()):
        yield f".{name}", left.get(name), right.get(name)
    for key, step in (("items", "[]"), ("additionalProperties", "{}")):
        if key in ours or key in theirs:
            yield step, ours.get(key), theirs.get(key)


class Narrowing(NamedTuple):
    """One place where ours may refuse what an older schema accepts."""

    path: str
    reason: str


def narrowings(ours: Schema, older: Schema) -> list[Narrowing]:
    """Return every place where ours may refuse what `older` accepts, sorted by path."""
    found = _narrowings(normal(ours), normal(older), "")
    return sorted(one._replace(path=one.path.lstrip(".")) for one in found)


def _narrowings(ours: Schema, older: Schema, path: str) -> Iterator[Narrowing]:
    for reason in (*_tighter_bounds(ours, older), *_tighter_sets(ours, older)):
        yield Narrowing(path, reason)
    for step, left, right in _children(ours, older):
        if right is None:
            continue
        if left is None:
            yield Narrowing(path + step, "is not known")
        else:
            yield from _narrowings(left, right, path + step)


_LOWER = ("minimum", "minLength", "minItems", "minProperties")
_UPPER = ("maximum", "maxLength", "maxItems", "maxProperties")


def _tighter_bounds(ours: Schema, older: Schema) -> Iterator[str]:
    for key in _LOWER:
        if key in ours and (key not in older or ours[key] > older[key]):
            yield f"{key} {older.get(key, ABSENT)} became {ours[key]}"
    for key in _UPPER:
        if key in ours and (key not in older or ours[key] < older[key]):
            yield f"{key} {older.get(key, ABSENT)} became {ours[key]}"


def _tighter_sets(ours: Schema, older: Schema) -> Iterator[str]:
    lost = _types(older) - _types(ours)
    if lost:
        yield f"type {', '.join(sorted(lost))} is refused"
    for key in ("format", "pattern"):
        if key in ours and ours[key] != older.get(key):
            yield f"{key} {older.get(key, ABSENT)} became {ours[key]}"
    for name in set(ours.get("required", ())) - set(older.get("required", ())):
        yield f"{name} became required"
    if "enum" in ours and not set(older.get("enum", (ABSENT,))) <= set(ours["enum"]):
        yield "enum lost values"
    for rule in ours.get("x-kubernetes-validations", ()):
        if rule not in older.get("x-kubernetes-validations", ()):
            yield f"rule {rule}"
    if _list_identity(ours) not in {_list_identity(older), (None, ())}:
        yield "entries are told apart in another way"


def _types(schema: Schema) -> set[str]:
    if schema.get("x-kubernetes-int-or-string"):
        return {"integer", "string"}
    return {schema["type"]} if "type" in schema else set()


def _list_identity(schema: Schema) -> tuple[str | None, tuple[str, ...]]:
    """Return what makes two entries of a list the same; an atomic list has no such thing."""
    kind = schema.get("x-kubernetes-list-type")
    return (None if kind == "atomic" else kind, tuple(schema.get("x-kubernetes-list-map-keys", ())))
