"""Counts attacks: a test marked `attack` says who wants what, and passes when they do not get it.

`attacks` is the number of different marked tests that ran (cases of one parametrised test are one attack), and
`attacks_succeeded` how many of them failed: a failed defence is a success of the attacker's.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests import marked

_SHARED = ("queued_cluster", "cluster")
"""Fixtures that are dear: tests that need one run in the same process. The slowest to start comes first."""


@pytest.hookimpl(trylast=True)  # the suite's report is made first
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "attack(attacker, wants): who attacks, and what they would gain")
    figures = ("attacks", None, "attacks_succeeded")
    marked.Tally.register(config, "attack", ("attacker", "wants"), same=lambda test, _: test, figures=figures)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    outcome = yield
    marked.note(item, "attack", outcome)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let two processes share the suite: by cluster, else by file."""
    for item in items:
        needed = [name for name in _SHARED if name in getattr(item, "fixturenames", ())]
        item.add_marker(pytest.mark.xdist_group(needed[0] if needed else item.path.stem))
    items.sort(key=lambda item: [name not in getattr(item, "fixturenames", ()) for name in _SHARED])
