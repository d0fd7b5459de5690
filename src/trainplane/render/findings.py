"""What is wrong with a TrainJob or a runtime, field by field, as admission reports it.

A finding is a value, not an exception: a user corrects everything that is wrong in one round, so every rule speaks and
none stops another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.api.tree import Step

Cause: TypeAlias = Literal["Invalid", "Forbidden", "Required", "NotFound", "InternalError"]
"""Why a field is refused, in the words of Kubernetes' field errors."""


MOST_FINDINGS: Final = 32
"""Errors that one look finds, and warnings: more than anybody corrects in a round."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason to refuse an object."""

    path: str
    """The field, from the root: `spec.trainer.numNodes`, `spec.trainer.args[3]`."""
    problem: str
    """What is wrong with it and what to write instead. It is read after the path."""
    cause: Cause = "Invalid"

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What rules found: errors refuse the object, warnings are shown to whoever wrote it."""

    errors: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether the object may exist."""
        return not self.errors

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(self.errors + other.errors, self.warnings + other.warnings)

    @classmethod
    def of(cls, remarks: Iterable[Finding | str]) -> Verdict:
        """Sort remarks into errors (findings) and warnings (texts), keeping their order.

        Of an object with thousands of faults the first few are found; of its warnings the first few are kept.
        """
        errors: list[Finding] = []
        warnings: list[str] = []
        for remark in remarks:
            if isinstance(remark, Finding):
                errors.append(remark)
                if len(errors) == MOST_FINDINGS:
                    break
            elif len(warnings) < MOST_FINDINGS:
                warnings.append(remark)
        return cls(tuple(errors), tuple(warnings))


def written(path: Iterable[Step]) -> str:
    """Return the steps of a path as messages have them: `spec.replicatedJobs[0].name`, `spec.replicatedJobs[node]`."""
    text = ""
    for step in path:
        if isinstance(step, tuple):
            text += f"[{step[1]}]"
        elif isinstance(step, int) or "." in step or "/" in step:
            text += f"[{step}]"
        else:
            text += f".{step}"
    return text.removeprefix(".")
