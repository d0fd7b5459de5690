"""What a TrainJob becomes, and what a document would change of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from trainplane.api.tree import Step, Tree
    from trainplane.render.provenance import Origin, Rendered

ABSENT: Final = object()
"""What stands in place of a value that one of the documents has not got."""


@dataclass(frozen=True)
class FieldChange:
    """A value that is not the same in both documents."""

    path: tuple[Step, ...]
    """Steps as in `api.tree`; an entry of a list with names is known by its name."""
    before: Any
    after: Any
    """Either is ABSENT where its document has not got it."""

    @property
    def is_new(self) -> bool:
        """Whether only the second document has it."""
        return self.before is ABSENT

    @property
    def is_gone(self) -> bool:
        """Whether only the first document has it."""
        return self.after is ABSENT


@dataclass(frozen=True)
class RenderedJob:
    """What a TrainJob becomes."""

    job: Tree
    """The TrainJob as a cluster would store it."""
    objects: tuple[Rendered, ...]
    """What is made of it, with where each field came from; the JobSet is the last."""
    drawn: tuple[str, ...] = ()
    """Objects that are made once because something in them is drawn, such as keys: `Secret fit-mpi-ssh-auth`."""
    warnings: tuple[str, ...] = ()
    """What a cluster would warn of."""


@dataclass(frozen=True)
class Difference:
    """A field of an object that would be another."""

    subject: str
    """The object: `JobSet fit`."""
    field: FieldChange
    origin: Origin | None = None
    """Where the new value comes from; the old one's, if it would be gone. None for the TrainJob itself."""


@dataclass(frozen=True)
class Comparison:
    """What a document would change of the TrainJob that exists."""

    differences: tuple[Difference, ...]
    """None: nothing would change."""
    exists: bool
    """Whether there is a TrainJob of that name; if not, everything would be new."""
    refusal: str = ""
    """Why the cluster would not take the change; empty if it would."""
