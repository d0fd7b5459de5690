"""Counts tests that carry a marker: how many different things they show, and how many of those did not hold.

A suite's conftest registers a `Tally`; each thing becomes a row of the suite's report, with the tests that show it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.suite import KEY, is_helper

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.suite import SuiteReport


class Tally:
    """Counts what tests with one marker show.

    Args:
        config: the run's; its report gets the figures.
        marker: the marker's name.
        columns: what the marker's arguments are called in rows.
        same: tells what two tests have in common that show the same thing, of a test's name and its marker's arguments.
        figures: names of the figures for how many things were tried, how many held and how many did not; None: no such.
    """

    def __init__(
        self,
        config: pytest.Config,
        marker: str,
        columns: tuple[str, ...],
        *,
        same: Callable[[str, tuple[Any, ...]], Any],
        figures: tuple[str, str | None, str | None],
    ) -> None:
        self._report: SuiteReport = config.stash[KEY]
        self._marker = marker
        self._columns = columns
        self._same = same
        self._figures = figures
        self._rows: dict[Any, dict[str, Any]] = {}

    @classmethod
    def register(cls, config: pytest.Config, marker: str, columns: tuple[str, ...], **how: Any) -> None:
        """Count in this run, unless this process only runs a part of it for another one."""
        if not is_helper(config):
            config.pluginmanager.register(cls(config, marker, columns, **how))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test's outcome; one that could not begin or end counts as one that did not hold."""
        if report.when != "call" and not report.failed:
            return
        for marker, arguments in report.user_properties:
            if marker == self._marker:
                self._count(report, arguments)

    def _count(self, report: pytest.TestReport, arguments: Any) -> None:
        test = report.nodeid.partition("[")[0]
        thing = self._same(test, tuple(arguments))
        row = self._rows.get(thing)
        if row is None:
            row = self._rows[thing] = {**dict(zip(self._columns, arguments, strict=False)), "tests": [], "held": True}
            self._report.rows.append(row)
        if test not in row["tests"]:
            row["tests"].append(test)
        row["held"] = row["held"] and report.passed
        tried, held, broken = self._figures
        holding = sum(row["held"] for row in self._rows.values())
        counts = {tried: len(self._rows), held: holding, broken: len(self._rows) - holding}
        for name, count in counts.items():
            if name is not None:
                self._report.figure(name, count)


def note(item: pytest.Item, marker: str, outcome: Any) -> None:
    """Put the arguments of a test's markers into its report, so that whoever hears of it knows them."""
    for found in item.iter_markers(marker):
        outcome.get_result().user_properties.append((marker, list(found.args)))
