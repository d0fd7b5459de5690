"""A pytest plugin that counts findings: tests marked `finding` show that what an audit found is fixed, or was no fault.

They are next to what they test, in any suite. `make test` runs those that need no engines, and counts them.

`findings` is how many different ones are shown, `held` how many of them by tests that all pass.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests import marked


@pytest.hookimpl(trylast=True)  # the suite's report is made first
def pytest_configure(config: pytest.Config) -> None:
    columns = ("audit", "number", "wrong")
    figures = ("findings", "held", None)
    marked.Tally.register(config, "finding", columns, same=lambda _, arguments: arguments[:2], figures=figures)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    outcome = yield
    marked.note(item, "finding", outcome)
