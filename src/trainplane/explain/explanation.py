"""An explanation: what is the matter with a TrainJob, by which evidence, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from trainplane.explain.catalogue import class_of

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.explain.trouble import Certainty

State: TypeAlias = Literal["Held", "Starting", "Running", "Complete", "Failed"]


@dataclass(frozen=True)
class Evidence:
    """One thing that was seen."""

    source: str
    """Where: `log of node-1`, `pod x`, `event of Job y`."""
    text: str
    """In its own words, cleaned."""

    def __str__(self) -> str:
        return f"{self.source}: {self.text}"


@dataclass(frozen=True)
class Explanation:
    """What is the matter with a TrainJob."""

    state: State
    summary: str
    """One sentence: who, and what happened."""
    cause: str = ""
    """The class of trouble, a heading of docs/troubleshooting.md; empty if nothing is wrong."""
    remedy: str = ""
    """What to do."""
    certainty: Certainty = "certain"
    """`certain`, `likely` or `unknown`."""
    step: str = ""
    """The step of the first fault, such as `node-1`."""
    pod: str = ""
    node: str = ""
    """The machine that it was on."""
    reason: str = ""
    """Kubernetes' own word: OOMKilled, Error, ImagePullBackOff, ..."""
    detail: str = ""
    """The telling words, as they were said."""
    exit_code: int | None = None
    evidence: tuple[Evidence, ...] = ()
    log: tuple[str, ...] = ()
    """The telling lines of that step's log."""

    @property
    def message(self) -> str:
        """What happened and what to do, without saying who."""
        if not self.cause:
            return self.summary
        said = self.detail or f"it {class_of(self.cause).says}"
        return f"{said.rstrip(' .')}. {self.remedy[:1].upper()}{self.remedy[1:]}."

    def tree(self) -> Tree:
        """Return it for JSON."""
        return {
            "state": self.state,
            "cause": self.cause,
            "summary": self.summary,
            "remedy": self.remedy,
            "certainty": self.certainty,
            "step": self.step,
            "pod": self.pod,
            "node": self.node,
            "reason": self.reason,
            "exitCode": self.exit_code,
            "evidence": [{"source": one.source, "text": one.text} for one in self.evidence],
            "log": list(self.log),
        }

    def __str__(self) -> str:
        lines = [self.summary]
        if self.cause:
            lines += [f"class: {self.cause} ({self.certainty})", f"do: {self.remedy}"]
        lines += [f"seen: {one}" for one in self.evidence]
        if self.log:
            lines += ["its telling lines:", *(f"  {line}" for line in self.log)]
        return "\n".join(lines)
