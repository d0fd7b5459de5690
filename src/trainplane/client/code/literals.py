"""Values as source text: what can be written down can be shipped."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


class NotPlainError(Exception):
    """A value, or one inside it, is no plain data. `where` leads to it, such as `['layers'][2]`."""

    def __init__(self, value: object, where: str) -> None:
        self.value = value
        self.where = where
        super().__init__(f"{where} is a {type(value).__name__}")


def write(value: Any, where: str = "") -> str:
    """Return an expression that makes an equal value in any Python.

    Numbers, texts, bytes, None, lists, tuples, sets, dicts and what they hold. Types count exactly: a subclass, such as
    a number of numpy, would arrive as something else than was sent.

    Raises:
        NotPlainError: it cannot be written down.
    """
    try:
        return _write(value, where)
    except RecursionError:
        raise NotPlainError(value, where) from None


def _write(value: Any, where: str) -> str:
    kind = type(value)
    if value is None or value is ... or kind in {bool, int, str, bytes}:
        return repr(value)
    if kind is float:
        return repr(value) if math.isfinite(value) else f'float("{value}")'
    if kind is complex:
        return f"complex({_write(value.real, where)}, {_write(value.imag, where)})"
    if kind in {list, tuple}:
        written = f"[{_entries(value, where)}]"
        return written if kind is list else f"tuple({written})"
    if kind in {set, frozenset}:
        return f"{kind.__name__}([{', '.join(sorted(_write(entry, where) for entry in value))}])"
    if kind is dict:
        pairs = (f"{_write(key, where)}: {_write(entry, f'{where}[{key!r}]')}" for key, entry in value.items())
        return f"{{{', '.join(pairs)}}}"
    raise NotPlainError(value, where)


def _entries(values: Iterable[Any], where: str) -> str:
    return ", ".join(_write(entry, f"{where}[{place}]") for place, entry in enumerate(values))
