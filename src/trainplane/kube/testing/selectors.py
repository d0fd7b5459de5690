"""Label and field selectors, as the API server reads them in a query."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SET = re.compile(r"^(?P<name>\S+)\s+(?P<operator>in|notin)\s+\((?P<values>[^)]*)\)$")
_COMMA = re.compile(r",(?![^(]*\))")


def matches(obj: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    """Return whether an object is chosen by the `labelSelector` and `fieldSelector` of a query."""
    labels = obj["metadata"].get("labels") or {}
    wanted_labels = _terms(query.get("labelSelector", ""))
    wanted_fields = _terms(query.get("fieldSelector", ""))
    return all(_holds(term, labels.get) for term in wanted_labels) and all(
        _holds(term, lambda path: _field(obj, path)) for term in wanted_fields
    )


@lru_cache(maxsize=256)
def _terms(selector: str) -> tuple[str, ...]:
    return tuple(term.strip() for term in _COMMA.split(selector) if term.strip())


def _holds(term: str, look_up: Callable[[str], str | None]) -> bool:
    if found := _SET.match(term):
        values = {value.strip() for value in found["values"].split(",")}
        return (look_up(found["name"]) in values) == (found["operator"] == "in")
    if "!=" in term:
        name, _, value = term.partition("!=")
        return look_up(name.strip()) != value.strip()
    if "=" in term:
        name, _, value = term.replace("==", "=").partition("=")
        return look_up(name.strip()) == value.strip()
    if term.startswith("!"):
        return look_up(term[1:].strip()) is None
    return look_up(term) is not None


def _field(obj: Any, path: str) -> str:
    for name in path.split("."):
        obj = obj.get(name) if isinstance(obj, dict) else None
    return "" if obj is None else str(obj)
