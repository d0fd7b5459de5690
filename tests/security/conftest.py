"""Counts attacks: a test marked `attack` says who wants what, and passes when they do not get it.

`attacks` is the number of different marked tests that ran (cases of one parametrised test are one attack), and
`attacks_succeeded` how many of them failed: a failed defence is a success of the attacker's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.suite import KEY, is_helper

if TYPE_CHECKING:
    from tests.suite import SuiteReport

_PROPERTY = "attack"


@pytest.hookimpl(trylast=True)  # the suite's report is made first
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "attack(attacker, wants): who attacks, and what they would gain")
    if not is_helper(config):
        config.pluginmanager.register(_Attacks(config.stash[KEY]))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    outcome = yield
    marker = item.get_closest_marker("attack")
    if marker is not None:
        outcome.get_result().user_properties.append((_PROPERTY, list(marker.args)))


class _Attacks:
    def __init__(self, report: SuiteReport) -> None:
        self._report = report
        self._held: dict[str, bool] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what became of an attack; a test that could not begin or end counts as the attacker's."""
        marked: Any = dict(report.user_properties).get(_PROPERTY)
        if marked is None or (report.when != "call" and not report.failed):
            return
        attacker, wants = marked
        test = report.nodeid.partition("[")[0]
        if test not in self._held:
            self._report.row(attacker=attacker, wants=wants, test=test)
        self._held[test] = self._held.get(test, True) and report.passed
        self._report.figure("attacks", len(self._held))
        self._report.figure("attacks_succeeded", sum(not held for held in self._held.values()))
