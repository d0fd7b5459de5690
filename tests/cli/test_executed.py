"""How many of the pages' commands and YAMLs are tried by a test, as a figure of what people type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.executed import NOT_RUN, VERDICTS, counts, entries, executed_pages

if TYPE_CHECKING:
    from tests.suite import SuiteReport


def test_what_was_executed_is_counted(report: SuiteReport) -> None:
    listed = entries()
    whole, rest = executed_pages(listed)
    report.figure("pages_executed", len(whole))
    report.figure("pages_not_executed", len(rest))
    for verdict in VERDICTS:
        report.figure(f"blocks_{verdict.replace(' ', '_')}", counts(listed)[verdict])
    assert len(whole) > len(rest)
    assert counts(listed)[NOT_RUN] < counts(listed).total() / 10
