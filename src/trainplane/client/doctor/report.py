"""What the doctor says: findings, each a line with its level and, unless all is well, what to do.

- `ok`: as it should be;
- `warning`: jobs run, but something is missing, about to end, or probably not meant;
- `wrong`: what the caller wants to do will not work;
- `unknown`: it could not be seen, so it may be either; what to ask an admin for stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

Level: TypeAlias = Literal["ok", "warning", "wrong", "unknown"]
Area: TypeAlias = Literal["machine", "connection", "APIs", "webhooks", "runtimes", "queues", "rights", "trial"]
"""What is looked at, in the order in which it is told: each stands on those before it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    area: Area
    level: Level
    text: str
    """What was seen: `JobSet is not served: no TrainJob can run`."""
    remedy: str = ""
    """What to do, as an instruction; empty where all is well."""


@dataclass(frozen=True, slots=True)
class Report:
    """All findings of one look, in the order of the areas."""

    findings: tuple[Finding, ...]
    reached: bool
    """Whether the cluster could be asked at all."""

    @property
    def fit(self) -> bool:
        """Whether nothing is known to be wrong. What could not be seen may be wrong all the same."""
        return not self.of("wrong")

    def of(self, level: Level) -> tuple[Finding, ...]:
        """Return the findings of a level."""
        return tuple(one for one in self.findings if one.level == level)

    def tree(self) -> Tree:
        """Return the report as plain data, for programs."""
        findings = [
            {"area": one.area, "level": one.level, "text": one.text, **({"remedy": one.remedy} if one.remedy else {})}
            for one in self.findings
        ]
        return {"fit": self.fit, "reached": self.reached, "findings": findings}
