"""A pytest plugin for the gate, active with GATE=1: it runs the selected tests and reruns those that fail in the share.

A test of the share that fails is run again three times. If it fails again, it has failed. Otherwise it is racy: the run
prints its name and its failure after RACY and goes on, and the next landing fixes the test. Fixed tests and tests whose
files changed are never run again (`tests/selection.py`).
"""

from __future__ import annotations

import os
from typing import Any, Final

import pytest
from _pytest.runner import runtestprotocol

from tests.selection import Kind, read

IS_ON: Final = os.environ.get("GATE") == "1"
RERUNS: Final = 3
RACY: Final = "racy"
"""The user property of a report whose test failed and then passed; its value is the failure."""
_KIND = pytest.StashKey[Kind]()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the gate does not run."""
    selection = read()
    left_out = []
    for item in items:
        kind = selection.kind(item.nodeid)
        if kind is None:
            left_out.append(item)
        else:
            item.stash[_KIND] = kind
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if _KIND in item.stash]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test of the share, and run it again if it fails."""
    if item.stash[_KIND] != "share":
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in run_judged(item, nextitem):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def run_judged(item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    """Run a test, and again if it fails; return the reports that count."""
    first = runtestprotocol(item, log=False, nextitem=nextitem)
    failures = [report.longreprtext for report in first if report.failed]
    if not failures:
        return first
    again = first
    for _ in range(RERUNS):
        item._initrequest()  # type: ignore[attr-defined] # a new request for the fixtures, as pytest-rerunfailures does
        again = runtestprotocol(item, log=False, nextitem=nextitem)
        if any(report.failed for report in again):
            return first
    again[-1].user_properties.append((RACY, failures[0]))
    return again


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let a suite succeed of which the gate runs nothing."""
    if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


class RacyTests:
    """Collects the racy tests of a run, prints them, and counts them in the suite's report."""

    def __init__(self, report: Any) -> None:
        self._report = report
        self._failures: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that failed and then passed."""
        failure = dict(report.user_properties).get(RACY)
        if failure is not None:
            self._failures[report.nodeid] = str(failure)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the racy tests with their failures."""
        if not self._failures:
            return
        self._report.figure(RACY, len(self._failures))
        for test, failure in self._failures.items():
            self._report.row(racy=test)
            terminalreporter.write_line(f"RACY {test} failed, and passed {RERUNS} times when it was run again:")
            terminalreporter.write_line(failure)
