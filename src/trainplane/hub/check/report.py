"""What a fleet check says: findings, by cluster and by what was looked at.

A finding names the object, what is wrong with it, and what to do. Its level says what it means for a job that is sent:

- `stops`: a job that depends on it does not run there;
- `unseen`: we were not allowed to look, so it may be anything;
- `warns`: jobs run, but something is about to break or is probably not meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.api.tree import Tree

Level: TypeAlias = Literal["stops", "unseen", "warns"]
Area: TypeAlias = Literal[
    "connection",
    "credentials",
    "versions",
    "kinds",
    "dispatch",
    "runtimes",
    "namespaces",
    "queues",
    "priorities",
    "trainjob",
]
"""What is looked at, in the order in which it is told."""

_SEVERITY: Final[tuple[Level, ...]] = ("stops", "unseen", "warns")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be."""

    level: Level
    problem: str
    """A sentence that begins with the object: `ClusterTrainingRuntime torch differs from the hub's`."""
    remedy: str
    """What to do, as an instruction."""
    diff: str = ""
    """The worker's YAML against the hub's, unified, if that is what it is about."""


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at in one area, and what was found."""

    area: Area
    summary: str
    """What is there, in a few words, also where all is well."""
    findings: tuple[Finding, ...] = ()

    @property
    def level(self) -> Level | None:
        """The worst of its findings, None if there is none."""
        return worst(self.findings)


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """What was found on one cluster: the hub or a worker."""

    name: str
    checks: tuple[Check, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, in the order of the areas."""
        return tuple(finding for check in self.checks for finding in check.findings)

    @property
    def level(self) -> Level | None:
        """The worst of its findings, None if there is none."""
        return worst(self.findings)

    def check(self, area: Area) -> Check:
        """Return what was found in one area; raises LookupError if it was not looked at."""
        for check in self.checks:
            if check.area == area:
                return check
        raise LookupError(f"{area} was not looked at on {self.name}")


@dataclass(frozen=True, slots=True)
class Report:
    """What was found on a fleet."""

    hub: ClusterReport
    workers: tuple[ClusterReport, ...]

    @property
    def level(self) -> Level | None:
        """The worst of all findings, None if there is none."""
        return worst(finding for cluster in (self.hub, *self.workers) for finding in cluster.findings)

    @property
    def ready(self) -> bool:
        """Whether nothing is known that would stop a job, and everything could be seen."""
        return self.level in {None, "warns"}

    def worker(self, name: str) -> ClusterReport:
        """Return what was found on a worker."""
        return next(worker for worker in self.workers if worker.name == name)

    def tree(self) -> Tree:
        """Return the report as plain data, for programs."""
        return {"ready": self.ready, "hub": _cluster(self.hub), "workers": [_cluster(one) for one in self.workers]}


def worst(findings: Iterable[Finding]) -> Level | None:
    """Return the worst level of some findings, None if there are none."""
    levels = {finding.level for finding in findings}
    return next((level for level in _SEVERITY if level in levels), None)


def _cluster(report: ClusterReport) -> Tree:
    return {"name": report.name, "level": report.level, "checks": [_check(check) for check in report.checks]}


def _check(check: Check) -> Tree:
    findings = [
        {"level": one.level, "problem": one.problem, "remedy": one.remedy, **({"diff": one.diff} if one.diff else {})}
        for one in check.findings
    ]
    return {"area": check.area, "summary": check.summary, "findings": findings}
