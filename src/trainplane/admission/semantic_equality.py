"""When two ways to write something mean the same.

Clients with Go types (Kueue among them) write back what they read, but not letter by letter: `value: ""` and `args: []`
are left out, `cpu: 0.5` becomes `500m`. Whoever compares letters then sees a change of `spec.trainer`, which may not
change, and the job never starts. So what means the same is treated as the same, and the form that is stored stays.
"""

from __future__ import annotations

from typing import Any, Final

from trainplane.admission.jsonpatch import identical
from trainplane.api.errors import QuantityError
from trainplane.api.quantity import parse
from trainplane.render.amounts import MOST_AMOUNTS

_AMOUNTS: Final = frozenset({"limits", "requests"})
"""Maps of quantities."""
_TEXTS: Final = frozenset({"labels", "annotations", "nodeSelector", "matchLabels", "volumeAttributes", "options"})
"""Maps of texts with keys of the user's: nothing in them goes without saying."""
_EMPTY_SPEAKS: Final = frozenset({"storageUri", "image", "storageClassName"})
"""Texts for which empty says something else than absent."""
_FALSE_IS_SILENT: Final = frozenset({"readOnly"})
"""Switches for which false is written by leaving them out."""


def same(one: Any, other: Any) -> bool:
    """Return whether two parts of a TrainJob mean the same."""
    return one is other or identical(one, other) or identical(meaning(one), meaning(other))


def settled(new: Any, stored: Any) -> Any:
    """Return the stored form if the new one means the same, else the new one."""
    return stored if same(new, stored) else new


def meaning(tree: Any) -> Any:
    """Return a part without what Go types would not write, and amounts in their one form."""
    if isinstance(tree, dict):
        said = ((key, _meaning_of(key, value)) for key, value in tree.items())
        return {key: value for key, value in said if not _is_silent(key, value)}
    if isinstance(tree, list):
        return [meaning(value) for value in tree]
    return tree


def _meaning_of(key: str, value: Any) -> Any:
    if key in _AMOUNTS and isinstance(value, dict) and len(value) <= MOST_AMOUNTS:  # more are refused anyway
        return {name: _amount(amount) for name, amount in value.items()}
    return value if key in _TEXTS else meaning(value)


def _is_silent(key: str, value: Any) -> bool:
    if value is None or value == []:
        return True
    if value == "":
        return key not in _EMPTY_SPEAKS
    if value is False:
        return key in _FALSE_IS_SILENT
    return value == {} and (key in _AMOUNTS or key in _TEXTS)


def _amount(value: Any) -> Any:
    """Return a quantity in billionths; what is none is left for the schema to refuse."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    try:
        return parse(str(value)).nanos
    except QuantityError:
        return value
