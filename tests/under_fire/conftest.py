"""Every test here is about a finding: `make under-fire` runs what is marked, wherever it stands, and nothing else."""

from __future__ import annotations

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.get_closest_marker("finding") is None:
        raise pytest.UsageError(f"{item.nodeid} is marked with no finding, so `make under-fire` would not run it")
