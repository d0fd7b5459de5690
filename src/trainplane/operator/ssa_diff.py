"""Predicts from managedFields whether a server-side apply would change an object. Pure.

After a restart nobody remembers what was applied, and a queue of 100,000 suspended JobSets should not be written anew
just to find out. Reading is cheap: the object says what it holds and, in `managedFields`, what of it we applied.

May err on the side of yes, since an apply that changes nothing does no harm; never on the side of no.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from trainplane.api import tree as trees
from trainplane.api.errors import QuantityError
from trainplane.api.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Hashable

    from trainplane.api.tree import Tree

_IDENTITY = ("apiVersion", "kind")
_AMOUNTS = frozenset({"requests", "limits"})
"""Objects whose values are quantities: webhooks in Go write 500m where we wrote 0.5, and both are the same."""


def would_change(live: Tree, body: Tree, manager: str) -> bool:
    """Return whether applying `body` as `manager` could change `live`, which was read with its managedFields."""
    ours = _fields_of(live, manager)
    if ours is None:
        return True
    wanted = {key: value for key, value in body.items() if key not in _IDENTITY}
    return _loses(ours, wanted) or not _holds(live, wanted)


def _fields_of(live: Tree, manager: str) -> Tree | None:
    for entry in live.get("metadata", {}).get("managedFields") or ():
        is_apply = entry.get("operation") == "Apply" and not entry.get("subresource")
        if is_apply and entry.get("manager") == manager:
            fields: Tree = entry.get("fieldsV1") or {}
            return fields
    return None


def _loses(fields: Tree, wanted: Any) -> bool:
    """Return whether we applied a field before that we do not want now: an apply would remove it."""
    entries = _Entries(wanted) if isinstance(wanted, list) else None
    for name, below in fields.items():
        if name == ".":
            continue
        kind, _, rest = name.partition(":")
        if kind == "f":
            part = wanted.get(rest) if isinstance(wanted, dict) else None
        else:
            part = None if entries is None else entries.find(kind, msgspec.json.decode(rest))
        if part is None or (below and _loses(below, part)):
            return True
    return False


class _Entries:
    """The entries of a list, found by what managedFields calls them: a whole value, or some of its fields."""

    def __init__(self, entries: list[Any]) -> None:
        self._entries = entries
        self._values: set[Hashable] | None = None
        self._keyed: dict[tuple[str, ...], dict[tuple[str, ...], dict[Hashable, Any]]] = {}

    def find(self, kind: str, value: Any) -> Any:
        """Return the first entry of a name, or None."""
        if kind == "v":
            if self._values is None:
                self._values = set(map(trees.hashable, self._entries))
            return value if trees.hashable(value) in self._values else None
        if kind != "k":
            return None
        names = tuple(value)
        if names not in self._keyed:
            self._keyed[names] = self._by(names)
        found = (
            group.get(tuple(trees.hashable(value[name]) for name in present))
            for present, group in self._keyed[names].items()
        )
        return next((entry for entry in found if entry is not None), None)

    def _by(self, names: tuple[str, ...]) -> dict[tuple[str, ...], dict[Hashable, Any]]:
        """Return the entries by their keys; a key that an entry leaves out has a default that we do not know."""
        groups: dict[tuple[str, ...], dict[Hashable, Any]] = {}
        for entry in self._entries:
            if isinstance(entry, dict):
                present = tuple(name for name in names if name in entry)
                keys = tuple(trees.hashable(entry[name]) for name in present)
                groups.setdefault(present, {}).setdefault(keys, entry)
        return groups


def _holds(live: Any, wanted: Any) -> bool:
    """Return whether `live` has all that is wanted; it may have more fields, but no more entries of a list."""
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(
            name in live and (_same_amounts if name in _AMOUNTS else _holds)(live[name], value)
            for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(live, list)
            and len(live) == len(wanted)
            and all(_holds(here, there) for here, there in zip(live, wanted, strict=True))
        )
    return bool(live == wanted)


def _same_amounts(live: Any, wanted: Any) -> bool:
    if not isinstance(live, dict) or not isinstance(wanted, dict):
        return _holds(live, wanted)
    try:
        return all(name in live and Quantity.of(live[name]) == Quantity.of(amount) for name, amount in wanted.items())
    except QuantityError:
        return _holds(live, wanted)
