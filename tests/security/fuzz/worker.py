"""One process of a run: some cases of one target, one after the other, and what became of them."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from tests.security.fuzz.findings import Finding, attempt, minimised
from tests.security.fuzz.watchdog import CASE_MEMORY_MB, limit_memory, peak_mb, resident_mb

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.security.fuzz.target import Target

_WARM_UP: Final = 0.2
"""The part of the cases after which memory is measured first: by then caches are full and code is loaded."""


@dataclass
class Report:
    """What became of some cases of a target."""

    target: str
    cases: int = 0
    seconds: float = 0.0
    """CPU time, inputs' making included."""
    slowest: float = 0.0
    """CPU seconds of the slowest case."""
    growth_mb: float = 0.0
    """MB that the process holds at the end more than after its warm-up."""
    outcomes: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    """The first input of each fault."""
    hits: dict[str, int] = field(default_factory=dict)
    """How many cases met each fault, by its mark."""

    def add(self, other: Report) -> None:
        """Take in what another process found."""
        self.cases += other.cases
        self.seconds += other.seconds
        self.slowest = max(self.slowest, other.slowest)
        self.growth_mb = max(self.growth_mb, other.growth_mb)
        for outcome, count in other.outcomes.items():
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + count
        for finding in other.findings:
            if finding.mark not in self.hits:
                self.findings.append(finding)
        for mark, count in other.hits.items():
            self.hits[mark] = self.hits.get(mark, 0) + count

    def count(self, kind: str) -> int:
        """Return how many cases met a fault of a kind."""
        kinds = {finding.mark: finding.kind for finding in self.findings}
        return sum(count for mark, count in self.hits.items() if kinds.get(mark) == kind)


def case(target: Target, seed: int, number: int) -> bytes:
    """Return the input of a number: the same in every process and on every machine."""
    return target.generate(Random(f"{seed}/{target.name}/{number}"))  # noqa: S311 inputs, no secrets


def work(
    make: Callable[[], Target], seed: int, numbers: range, *, began: Callable[[int], None] = lambda _: None
) -> Report:
    """Run the cases of some numbers. `began` hears of each before it runs, for whoever watches from outside."""
    limit_memory()
    logging.getLogger("trainplane").addHandler(logging.NullHandler())  # what is refused is logged, and is no news here
    logging.getLogger("trainplane").propagate = False
    target = make()
    report = Report(target.name)
    start = time.process_time()
    warm, first, peak = int(len(numbers) * _WARM_UP), resident_mb(), peak_mb()
    for place, number in enumerate(numbers):
        began(number)
        if place == warm:
            first = resident_mb()
        before = time.process_time()
        data = case(target, seed, number)
        outcome, finding = attempt(target, data)
        report.slowest = max(report.slowest, time.process_time() - before)
        used, peak = peak_mb() - peak, peak_mb()
        if finding is None and used > CASE_MEMORY_MB:
            finding = Finding(target.name, "memory", outcome, f"{used:.0f} MB for one case", data)
        report.cases += 1
        report.outcomes[outcome] = report.outcomes.get(outcome, 0) + 1
        if finding is not None:
            _note(report, target, finding)
    report.growth_mb = resident_mb() - first
    report.seconds = time.process_time() - start
    target.close()
    return report


def _note(report: Report, target: Target, finding: Finding) -> None:
    if finding.mark not in report.hits:
        smallest = minimised(target, finding)
        smallest.save()
        report.findings.append(smallest)
    report.hits[finding.mark] = report.hits.get(finding.mark, 0) + 1
