"""The words in which cases are written: what is set up, and the steps that both sides then take.

A case is data. Its documents may say `@ns@` for the name of the namespace it runs in, which is how objects without a
namespace get names of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Tree = dict[str, Any]

NAMESPACE = "@ns@"


@dataclass(frozen=True)
class Create:
    """Create an object."""

    document: Tree

    @property
    def label(self) -> str:
        """What the step does, in a word or two."""
        return f"create {self.document['kind']}"


@dataclass(frozen=True)
class Change:
    """Merge-patch an object, as a user's edit does; a list of operations is sent as a JSON patch."""

    patch: Tree | list[Tree]
    kind: str = "TrainJob"
    name: str = "job"

    @property
    def label(self) -> str:
        """What the step does, in a word or two."""
        return f"change {self.kind}"


@dataclass(frozen=True)
class Report:
    """Write a JobSet's status, in the place of the JobSet controller."""

    status: Tree
    name: str = "job"

    @property
    def label(self) -> str:
        """What the step does, in a word or two."""
        return "report JobSet status"


@dataclass(frozen=True)
class Remove:
    """Delete an object."""

    kind: str
    name: str = "job"

    @property
    def label(self) -> str:
        """What the step does, in a word or two."""
        return f"remove {self.kind}"


@dataclass(frozen=True)
class Await:
    """Let time pass until the TrainJob has this condition on both sides, or the seconds are over."""

    condition: str
    name: str = "job"
    seconds: float = 25.0

    @property
    def label(self) -> str:
        """What the step does, in a word or two."""
        return f"await {self.condition}"


Step = Create | Change | Report | Remove | Await


@dataclass(frozen=True)
class Case:
    """One case. Its id begins with the number of the contract's §8 where it has one."""

    id: str
    steps: tuple[Step, ...]
    setup: tuple[Tree, ...] = ()
    shows: tuple[str, ...] = field(default=(), repr=False)
    """Wanted differences that it is there to show, as `id kind`: were ours as the reference, nothing would differ."""

    def __str__(self) -> str:
        return self.id
