"""A fault: one change of our source that a user would suffer from, as data.

It says where it is planted and what it does there, and nothing of who finds it: that is conformance's to show.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A text of a module's source, and what stands there `instead`.

    The text stands in the module exactly once, within functions, and takes as many lines as what stands there instead:
    so that what else the module has stays where it is. A fault that no longer fits is an error, not a fault less.
    """

    id: str
    module: str
    """Below `trainplane`."""
    what: str
    text: str
    instead: str

    def __str__(self) -> str:
        return self.id


def faults_of(module: str, *rows: tuple[str, str, str, str]) -> tuple[Fault, ...]:
    """Return the faults of a module: of each its id, what it does to a user, its text and what stands there instead."""
    return tuple(Fault(name, module, what, text, instead) for name, what, text, instead in rows)
