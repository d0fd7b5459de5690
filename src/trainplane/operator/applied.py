"""Whether a server-side apply would change anything, told without asking for one. Pure.

After a restart nobody remembers what was applied, and a queue of 100,000 suspended JobSets should not be written anew
just to find out. Reading is cheap: the object says what it holds and, in `managedFields`, what of it we applied.

May err on the side of yes, since an apply that changes nothing does no harm; never on the side of no.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from trainplane.api.errors import QuantityError
from trainplane.api.quantity import Quantity

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

_IDENTITY = ("apiVersion", "kind")
_AMOUNTS = frozenset({"requests", "limits"})
"""Objects whose values are quantities: webhooks in Go write 500m where we wrote 0.5, and both are the same."""


def would_change(live: Tree, body: Tree, manager: str) -> bool:
    """Say whether applying `body` as `manager` could change `live`, which was read with its managedFields."""
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
    """Say whether we applied a field before that we do not want now: an apply would remove it."""
    for name, below in fields.items():
        if name == ".":
            continue
        kind, _, rest = name.partition(":")
        part = _part(kind, rest, wanted)
        if part is None or (below and _loses(below, part)):
            return True
    return False


def _part(kind: str, rest: str, wanted: Any) -> Any:
    """Return the part of a tree that a step of managedFields names, or None."""
    if kind == "f":
        return wanted.get(rest) if isinstance(wanted, dict) else None
    if not isinstance(wanted, list):
        return None
    value = msgspec.json.decode(rest)
    if kind == "v":
        return value if value in wanted else None
    if kind == "k":
        return next((entry for entry in wanted if _has_keys(entry, value)), None)
    return None


def _has_keys(entry: Any, keys: Tree) -> bool:
    """Tell entries of a keyed list apart; a key that an entry leaves out has a default that we do not know."""
    return isinstance(entry, dict) and all(entry.get(name, value) == value for name, value in keys.items())


def _holds(live: Any, wanted: Any) -> bool:
    """Say whether `live` has all that is wanted; it may have more fields, but no more entries of a list."""
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
