"""Trees: JSON as the API server wrote it, read and changed without losing what we do not know.

A tree is what `json` makes of a document. Nothing here changes a tree in place: `put` and `drop` return a new one that
shares every part they did not touch, so a tree may be handed to anyone and compared by identity part by part.

What somebody else wrote may have any part of any type. `fields`, `entries`, `text` and `number` read it as what it
ought to be, and anything else as not there.

A step of a path is a key of an object, an index of a list, or `("name", "node")`: the entry of a list whose `name` is
`node`, which is how Kubernetes keys its lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Hashable

Tree: TypeAlias = dict[str, Any]
"""A JSON object whose fields we do not list."""

Step: TypeAlias = str | int | tuple[str, str]


def get(tree: Any, *path: Step) -> Any:
    """Return what stands at a path, or None if any step of it is missing."""
    for step in path:
        if isinstance(step, str):  # nearly all are: not a call for each
            if not isinstance(tree, dict) or step not in tree:
                return None
            tree = tree[step]
            continue
        place = _place(tree, step)
        if place is None:
            return None
        tree = tree[place]
    return tree


def fields(tree: Any, *path: Step) -> Tree:
    """Return the object at a path; an empty one if there is none."""
    found = get(tree, *path)
    return found if isinstance(found, dict) else {}


def entries(tree: Any, *path: Step) -> list[Tree]:
    """Return the objects of the list at a path; none if there is no list."""
    found = get(tree, *path)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def text(tree: Any, *path: Step) -> str | None:
    """Return the text at a path; None if there is none, or an empty one."""
    found = get(tree, *path)
    return found if isinstance(found, str) and found else None


def number(tree: Any, *path: Step) -> int | None:
    """Return the whole number at a path; None if there is none."""
    found = get(tree, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def put(tree: Any, *path: Step, value: Any) -> Any:
    """Return the tree with `value` at a path; missing objects and keyed entries are made on the way.

    Raises:
        LookupError: the path needs a list entry by index that is not there, or leads into a string or a number.
    """
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        return {**_as(dict, tree, step), step: put((tree or {}).get(step), *rest, value=value)}
    entries = list(_as(list, tree, step))
    place = _place(entries, step)
    if place is not None:
        entries[place] = put(entries[place], *rest, value=value)
    elif isinstance(step, tuple):
        entries.append(put({step[0]: step[1]}, *rest, value=value))
    else:
        raise LookupError(f"the list has {len(entries)} entries, none at index {step}")
    return entries


def drop(tree: Any, *path: Step) -> Any:
    """Return the tree without what stands at a path; a path that is not there drops nothing."""
    place = _place(tree, path[0])
    if place is None:
        return tree
    if isinstance(tree, dict):
        if len(path) == 1:
            return {key: value for key, value in tree.items() if key != place}
        return {**tree, place: drop(tree[place], *path[1:])}
    entries = list(tree)
    if len(path) == 1:
        del entries[place]
    else:
        entries[place] = drop(entries[place], *path[1:])
    return entries


def merge(tree: Tree, patch: Tree) -> Tree:
    """Return the tree with a JSON merge patch applied: objects are merged, null drops a field, all else replaces."""
    merged = dict(tree)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = merge(merged.get(key) or {}, value)
        else:
            merged[key] = value
    return merged


def copy(tree: Any) -> Any:
    """Return a copy that shares no object and no list with its original."""
    if isinstance(tree, dict):
        return {key: copy(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [copy(value) for value in tree]
    return tree


def without_nulls(tree: Any) -> Any:
    """Return the tree as the API server stores it: an object's field that is null is not there."""
    if isinstance(tree, dict):
        return {key: without_nulls(value) for key, value in tree.items() if value is not None}
    if isinstance(tree, list):
        return [without_nulls(value) for value in tree]
    return tree


def hashable(tree: Any) -> Hashable:
    """Return what stands for a tree in a set or as a key: equal for trees that are equal, and for no others."""
    if isinstance(tree, dict):
        return frozenset((key, hashable(value)) for key, value in tree.items())
    if isinstance(tree, list):
        return tuple(map(hashable, tree))
    return tree  # type: ignore[no-any-return] # JSON has no others that are not


def _place(tree: Any, step: Step) -> Any:
    """Return the key or index that a step means in this tree, or None."""
    if isinstance(step, str):
        return step if isinstance(tree, dict) and step in tree else None
    if not isinstance(tree, list):
        return None
    if isinstance(step, int):
        return step if -len(tree) <= step < len(tree) else None
    key, wanted = step
    matches = (i for i, entry in enumerate(tree) if isinstance(entry, dict) and entry.get(key) == wanted)
    return next(matches, None)


def _as(kind: type, tree: Any, step: Step) -> Any:
    if tree is None:
        return kind()
    if not isinstance(tree, kind):
        raise LookupError(  # noqa: TRY004 like a missing index, it is the path that is wrong
            f"step {step!r} needs a {kind.__name__}, found a {type(tree).__name__}"
        )
    return tree
