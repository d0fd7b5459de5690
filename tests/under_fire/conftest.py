"""Every test here is about a finding: `make test` counts findings by their marks."""

from __future__ import annotations

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.get_closest_marker("finding") is None:
        raise pytest.UsageError(f"{item.nodeid} has no mark `finding`, so no report would count it")
