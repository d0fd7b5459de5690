"""The marker `scenario`, and what a run says about each: a row with its verdict, and how many passed.

`@pytest.mark.scenario(43, "what it shows")` names a scenario of docs/kueue-scenarios.md that a test replays; a test may
carry several, and several tests one: it passes when all of them do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.suite import KEY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.suite import SuiteReport

MARKER = "scenario(number, title): a scenario of docs/kueue-scenarios.md that this test replays"


@dataclass
class Scenario:
    """What the run has seen of one scenario."""

    number: int | str
    title: str
    seconds: float = 0.0
    verdicts: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """`passed` when every test of it passed, else the worst that happened."""
        return next((word for word in ("failed", "skipped") if word in self.verdicts), "passed")


class Scenarios:
    """A plugin of the run: gathers the scenarios of its tests and writes them into the suite's report at the end."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int | str, str], Scenario] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Any:
        """Note how a phase of a test ended, for each scenario of the test."""
        outcome: pytest.TestReport = yield
        for scenario in self._of(item):
            scenario.seconds += outcome.duration if outcome.when == "call" else 0.0
            if outcome.when == "call" or not outcome.passed:
                scenario.verdicts.append(outcome.outcome)
        return outcome

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write one row for each scenario, in order of their numbers."""
        if self._seen:
            write(session.config.stash[KEY], list(self._seen.values()))

    def _of(self, item: pytest.Item) -> Iterator[Scenario]:
        for mark in item.iter_markers("scenario"):
            number, title = mark.args
            yield self._seen.setdefault((number, title), Scenario(number, title))


def write(report: SuiteReport, scenarios: list[Scenario]) -> None:
    """Add rows and figures to a report; those of an earlier command of the same suite stay."""
    for one in sorted(scenarios, key=lambda one: (isinstance(one.number, str), one.number)):
        report.row(scenario=one.number, title=one.title, verdict=one.verdict, seconds=round(one.seconds, 2))
    passed = sum("scenario" in row and row["verdict"] == "passed" for row in report.rows)
    report.figure("scenarios_passed", passed)
