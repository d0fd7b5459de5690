"""What became of each field of an older job, and why a job cannot be moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.api.tree import Tree
    from trainplane.legacy.migrate.comparison import Difference
    from trainplane.render.findings import Finding

Outcome: TypeAlias = Literal["carried", "changed", "left out"]
"""Says the same in the TrainJob; says it otherwise there; has no place there, and the note says what to do."""


@dataclass(frozen=True, slots=True)
class Note:
    """What became of one field."""

    field: str
    outcome: Outcome
    text: str = ""
    alters: frozenset[str] = frozenset()
    """Fields of pods that are not what they were for this reason (`comparison`)."""

    def __str__(self) -> str:
        return f"{self.field}: {self.outcome}{f': {self.text}' if self.text else ''}"


@dataclass(frozen=True, slots=True)
class Migration:
    """An older job, moved: what to create in its place, what that changes, and the proof."""

    kind: str
    """What was moved."""
    objects: tuple[Tree, ...]
    """What to create, in this order: the TrainingRuntime where no shipped runtime fits, then the TrainJob."""
    notes: tuple[Note, ...]
    differences: tuple[Difference, ...] = ()
    """How the pods differ from what they were; each follows from a note."""
    pods: int = 0
    """How many pods were compared; none if the runtime is not known here."""


class RefusedError(Exception):
    """A job cannot be moved: what it asks for has no counterpart, or it is no job. The user's affair; not retryable."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        """Take every reason: a user corrects all in one round."""
        self.findings = tuple(findings)
        super().__init__("; ".join(map(str, self.findings)))
