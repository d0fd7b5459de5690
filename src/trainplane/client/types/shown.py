"""What people see of a type: a text in a terminal, HTML in a notebook. How, `display` says; types do not know it."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_waiting: list[Callable[[], object]] = []


def when_shown(register: Callable[[], object]) -> None:
    """Call `register`, which registers how types look, when the first of them is shown: until then it costs nothing."""
    _waiting.append(register)


@singledispatch
def text_of(value: object) -> str:
    """Return a value as a terminal shows it; `display.text` registers each type."""
    return repr(value)


@singledispatch
def html_of(value: object) -> str | None:
    """Return a value as a notebook shows it, None for its text; `display.cards` registers each type."""
    del value
    return None


class Shown:
    """A type that people look at."""

    def __str__(self) -> str:
        _load()
        return text_of(self)

    def _repr_html_(self) -> str | None:
        _load()
        return html_of(self)


def _load() -> None:
    while _waiting:
        _waiting.pop()()
