"""Whether two runtimes mean the same, whoever wrote them down. Pure.

A snapshot that the reference took went through Go's types: amounts are written anew, and what is empty was dropped or
added. Nothing else may differ from the runtime as it stands, or a snapshot that somebody planted would pass for it. So
False and 0 count as absent only in fields where they mean the same: `automountServiceAccountToken: false` does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainplane.api.errors import QuantityError
from trainplane.api.quantity import Quantity

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

_ZERO_IS_ABSENT: Final = frozenset(
    {"divisor", "hostIPC", "hostNetwork", "hostPID", "jobIndex", "podIndex", "readOnly", "stdin", "stdinOnce", "tty"}
)
"""Fields that are no pointers in Go's types, so that a zero which somebody wrote is not written again."""
_MAPS_OF_AMOUNTS: Final = frozenset({"limits", "overhead", "requests"})
_AMOUNTS: Final = frozenset({"divisor", "sizeLimit"})
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def are_alike(one: Tree, other: Tree) -> bool:
    """Return whether every TrainJob becomes the same of two runtimes."""
    return bool(_meaning(one) == _meaning(other))


def _meaning(runtime: Tree) -> Any:
    """Return all of a runtime that rendering looks at, in one form."""
    meta = runtime.get("metadata") or {}
    identity = (runtime.get("apiVersion"), runtime.get("kind"), meta.get("namespace") or "", meta.get("name"))
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key != _LAST_APPLIED}
    return *identity, meta.get("labels") or {}, annotations, _plain(runtime.get("spec"))


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if isinstance(value, dict):
        plain = {name: _field(name, entry) for name, entry in value.items()}
        return {name: entry for name, entry in plain.items() if not _is_absent(name, entry)}
    return value


def _field(name: str, value: Any) -> Any:
    if name in _MAPS_OF_AMOUNTS and isinstance(value, dict):
        return {resource: _amount(amount) for resource, amount in value.items()}
    return _amount(value) if name in _AMOUNTS else _plain(value)


def _amount(value: Any) -> Any:
    try:
        return Quantity.of(value).nanos
    except QuantityError:
        return _plain(value)


def _is_absent(name: str, value: Any) -> bool:
    return value in (None, "", [], {}) or (name in _ZERO_IS_ABSENT and not value)
