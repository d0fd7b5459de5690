"""A probe: what a user does with the SDK, done on both sides, and the few words in which each side's answer is told.

A probe answers rows of the table in docs/official-sdk.md, and each row says what is to be seen on either side: a test
fails when one of them shows something else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sdk.official.side import Side

Observed: TypeAlias = "tuple[str, ...]"
Look: TypeAlias = "Callable[[Side], Observed]"


@dataclass(frozen=True)
class Row:
    """One row: what is asked, and what both sides answer."""

    contract: str
    """The part of the SDK's contract that it stands for."""
    what: str
    reference: str
    ours: str


@dataclass(frozen=True)
class Probe:
    """A probe and its rows."""

    name: str
    look: Look
    rows: tuple[Row, ...]


PROBES: dict[str, Probe] = {}


def row(contract: str, what: str, reference: str, ours: str = "") -> Row:
    """Return a row; without `ours`, both answer the same."""
    return Row(contract, what, reference, ours or reference)


def probe(*rows: Row) -> Callable[[Look], Look]:
    """Make a function a probe: it returns what it saw, one answer for each row."""

    def register(look: Look) -> Look:
        name = getattr(look, "__name__", "")
        assert name not in PROBES, f"two probes are called {name}"
        PROBES[name] = Probe(name, look, rows)
        return look

    return register
