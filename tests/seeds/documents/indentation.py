"""YAML that has lost its indentation gets it back, from what the schema of our CRDs lets stand where.

A key belongs to the innermost open mapping that may have it, has it not yet, and fits its value; an entry of a list to
the innermost open list. Where that leads to a key which fits nowhere, the next one out is tried. Nothing but white
space changes. A block of text (`|`) goes to the end: nothing else tells where it would end.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import yaml

from lab.paths import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

Schema = dict[str, Any]

_KEY: Final = re.compile(r"([\w./-]+):(?: +(.*))?$")
_COMMENT: Final = re.compile(r"\s+#.*$")
_STRINGS: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}
_METADATA: Final[Schema] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "labels": _STRINGS,
        "annotations": _STRINGS,
    },
}


@dataclass(frozen=True)
class _Open:
    """A mapping, or a list, that lines may still be added to; its lines begin at `column`."""

    schema: Schema
    column: int
    keys: frozenset[str] = field(default_factory=frozenset)

    def entry(self, key: str) -> Schema | None:
        """Return what a key of this mapping may hold, None if it may not have that key, or has it."""
        if key in self.keys:
            return None
        if key == "metadata" and key in self.schema.get("properties", {}):
            return _METADATA
        found: Schema | None = self.schema.get("properties", {}).get(key, self.schema.get("additionalProperties"))
        return found


_Stack = tuple[_Open, ...]


class NoPlaceError(ValueError):
    """A line fits nowhere."""


def indented(text: str) -> str:
    """Return a YAML document with its indentation; one that has some is returned as it is."""
    lines = text.splitlines()
    if any(line.startswith(" ") for line in lines):
        return text
    found = next(_placed(lines, (_Open(_root(lines), 0),)), None)
    if found is None:
        message = f"no indentation of these lines fits the schema: {lines[0]} …"
        raise NoPlaceError(message)
    return "".join(f"{' ' * column}{line}\n" for column, line in zip(found, lines, strict=True))


def _placed(lines: list[str], stack: _Stack) -> Iterator[tuple[int, ...]]:
    """Yield each way to indent the lines, the most likely first."""
    if not lines:
        yield ()
        return
    for column, opened in _places(lines[0], stack):
        if lines[0].endswith("|"):
            yield (column, *(column + 2 for _ in lines[1:]))
            return
        for rest in _placed(lines[1:], opened):
            yield (column, *rest)


def _places(line: str, stack: _Stack) -> Iterator[tuple[int, _Stack]]:
    """Yield where a line may stand, and what is open after it, from the innermost place outwards."""
    words, is_entry = (line[2:], True) if line.startswith("- ") else (line, False)
    match = _KEY.match(_COMMENT.sub("", words))
    for depth in range(len(stack), 0, -1):
        top, below = stack[depth - 1], stack[: depth - 1]
        if is_entry != (top.schema.get("type") == "array"):
            continue
        if not is_entry:
            yield from _with_key(top, below, match)
        elif top.schema["items"].get("type") == "object":
            mapping = _Open(top.schema["items"], top.column + 2)
            for _, opened in _with_key(mapping, (*below, top), match):
                yield top.column, opened
        elif match is None or match[2] is None:
            yield top.column, (*below, top)


def _with_key(mapping: _Open, below: _Stack, match: re.Match[str] | None) -> Iterator[tuple[int, _Stack]]:
    schema = mapping.entry(match[1]) if match else None
    if match is None or schema is None:
        return
    written = replace(mapping, keys=mapping.keys | {match[1]})
    holds_more = schema.get("type") in {"object", "array"}
    if match[2] is None and holds_more:
        yield mapping.column, (*below, written, _Open(schema, mapping.column + 2))
    elif match[2] is not None and (not holds_more or match[2][0] in "[{"):
        yield mapping.column, (*below, written)


def _root(lines: list[str]) -> Schema:
    """Return the schema of the document that begins here: an object of a kind, or the part that has the first key."""
    kind = next((line.removeprefix("kind: ") for line in lines if line.startswith("kind: ")), None)
    if kind is not None and lines[0].startswith("apiVersion:"):
        return _schemas()[kind]
    key = lines[0].partition(":")[0]
    level = [_schemas()["ClusterTrainingRuntime"]]
    while level:
        for schema in level:
            if key in schema.get("properties", {}):
                return {"type": "object", "properties": {key: schema["properties"][key]}}
        level = [below for schema in level for below in schema.get("properties", {}).values()]
    message = f"no part of a runtime is called {key}"
    raise NoPlaceError(message)


@functools.cache
def _schemas() -> dict[str, Schema]:
    crds = [yaml.safe_load(path.read_text()) for path in (REPOSITORY / "manifests/crds").glob("*.yaml")]
    return {
        crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for crd in crds
        if crd["kind"] == "CustomResourceDefinition"
    }
