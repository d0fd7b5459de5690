"""A pytest plugin that makes a run a suite: a closing line `N passed, N failed` and a report of figures.

`pytest --suite NAME` writes `build/reports/NAME.json`; with `--suite-append` it adds to the report of an earlier
command of the same suite. Tests record what they measure with the `report` fixture, so every figure in a report comes
from the run that wrote it.

Hypothesis judges what is found and not how fast: on a busy machine, a slow draw is no fault of the code. It draws the
same cases in every run, so that a change is judged by what it changes; with FULL=1 it looks for new ones.
"""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import gate
from tests.size import FULL

REPORTS = Path(__file__).resolve().parent.parent / "build" / "reports"


@dataclass
class SuiteReport:
    """What a suite found: counts, figures by name, and rows for tables."""

    name: str
    passed: int = 0
    failed: int = 0
    figures: dict[str, float] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def figure(self, name: str, value: float) -> None:
        """Record a number that this run measured."""
        self.figures[name] = round(float(value), 4)

    def row(self, **columns: Any) -> None:
        """Record one row of the suite's table."""
        self.rows.append(columns)

    @property
    def path(self) -> Path:
        """Where the report is written."""
        return REPORTS / f"{self.name}.json"

    def write(self) -> None:
        """Write the report as JSON, whole or not at all."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        content = {"passed": self.passed, "failed": self.failed, "figures": self.figures, "rows": self.rows}
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(content, indent=2) + "\n")
        partial.rename(self.path)


KEY = pytest.StashKey[SuiteReport]()
_MEASURED = "measured"


def is_helper(config: pytest.Config) -> bool:
    """Whether this process runs a part of the tests for another one (`pytest -n`)."""
    return hasattr(config, "workerinput")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--suite NAME`."""
    parser.addoption("--suite", default="unit", help="name of the suite: its report is build/reports/NAME.json")
    parser.addoption("--suite-append", action="store_true", help="add to the suite's report instead of replacing it")


def pytest_configure(config: pytest.Config) -> None:
    """Begin the report; hear Ctrl-C.

    What a shell starts in the background ignores it, and so does all that is started from there: a program that a test
    ends by Ctrl-C would go on for ever.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.register_profile(
        "suite",
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=not FULL,
    )
    settings.load_profile("suite")
    report = SuiteReport(config.getoption("--suite"))
    if config.getoption("--suite-append") and report.path.exists():
        earlier = json.loads(report.path.read_text())
        report = SuiteReport(report.name, **earlier)
    config.stash[KEY] = report
    config.pluginmanager.register(Counting(report))
    if gate.IS_ON:
        config.pluginmanager.register(gate)
        if not is_helper(config):
            config.pluginmanager.register(gate.RacyTests(report))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave full-size tests out unless FULL=1."""
    left_out = [item for item in items if item.get_closest_marker("full") and not FULL]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def report(pytestconfig: pytest.Config) -> SuiteReport:
    """Return the report that this suite will write."""
    return pytestconfig.stash[KEY]


class Counting:
    """Counts each test's outcome; where several processes share a suite, in the one that hears of them all."""

    def __init__(self, report: SuiteReport) -> None:
        self._report = report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test that failed in any of its phases, was skipped, or passed."""
        if report.failed:
            self._report.failed += 1
        elif report.skipped:
            self._report.figures["skipped"] = self._report.figures.get("skipped", 0) + 1
        elif report.when == "call" and report.passed:
            self._report.passed += 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what tests of another process measured."""
        measured = getattr(node, "workeroutput", {}).get(_MEASURED, {"figures": {}, "rows": []})
        self._report.figures |= measured["figures"]
        self._report.rows += measured["rows"]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand over what tests of this process measured, when another one writes the report."""
    if is_helper(session.config):
        report = session.config.stash[KEY]
        session.config.workeroutput[_MEASURED] = {"figures": report.figures, "rows": report.rows}  # type: ignore[attr-defined] # xdist's


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write the report and print the closing line."""
    if is_helper(config):
        return
    report = config.stash[KEY]
    report.write()
    print(f"{report.passed} passed, {report.failed} failed")  # noqa: T201 the closing line is the contract with CI
