"""Merging as it was before it was quick: each entry is looked for in the list. What it gives, `merge` must give."""

from __future__ import annotations

from typing import Any

from trainplane.api import tree as trees
from trainplane.render.merge import PLAIN, Keyed, Shape

Tree = dict[str, Any]


class OracleError(ValueError):
    """The patch cannot be merged."""


def merged(tree: Tree, patch: Tree, shape: Shape) -> Tree:
    """Return a tree with a patch merged in."""
    result: Tree = trees.copy(tree)
    _into(result, patch, shape)
    return result


def _into(tree: Tree, patch: Tree, shape: Shape) -> None:
    for key, value in patch.items():
        if shape.only and key not in shape.only:
            continue
        if key.startswith("$"):
            raise OracleError(key)
        if value is None:
            tree.pop(key, None)
        elif isinstance(value, dict):
            if not isinstance(tree.get(key), dict):
                tree[key] = {}
            _into(tree[key], value, shape.objects.get(key, PLAIN))
        elif isinstance(value, list):
            _list(tree, key, value, shape.lists.get(key))
        else:
            tree[key] = value


def _list(tree: Tree, key: str, patch: list[Any], keyed: Keyed | None) -> None:
    present = tree.get(key)
    if not patch:
        return
    known = present if isinstance(present, list) else []
    if keyed is None:
        tree[key] = trees.without_nulls(patch)
    elif keyed.mode == "union":
        tree[key] = [*known, *(trees.without_nulls(entry) for entry in patch if entry not in known)]
    else:
        tree[key] = _entries(known, patch, keyed)


def _entries(present: list[Tree], patch: list[Any], keyed: Keyed) -> list[Tree]:
    key = keyed.key
    places = {entry.get(key): place for place, entry in enumerate(present)}
    for place, entry in enumerate(patch):
        if not isinstance(entry, dict) or entry.get(key) is None:
            raise OracleError(key)
        if any(entry[key] == earlier[key] for earlier in patch[:place]):
            raise OracleError(key)
    named = {entry[key]: entry for entry in patch}
    for name, change in named.items():
        place_of = places.get(name)
        if place_of is None or keyed.mode == "replace":
            named[name] = trees.without_nulls(change)
            continue
        entry = named[name] = present[place_of]
        if keyed.mode == "retain":
            for gone in entry.keys() - change.keys():
                del entry[gone]
        _into(entry, {field: value for field, value in change.items() if field != key}, keyed.entry)
    result: list[Tree] = []
    rest = [entry for entry in present if entry.get(key) not in named]
    for name, entry in named.items():
        before = places.get(name)
        while before is not None and rest and places[rest[0].get(key)] < before:
            result.append(rest.pop(0))
        result.append(entry)
    return result + rest
