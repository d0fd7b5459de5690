"""Counts attacks: a test marked `attack` says who wants what, and passes when they do not get it.

`attacks` is the number of different marked tests that ran (cases of one parametrised test are one attack), and
`attacks_succeeded` how many of them failed: a failed defence is a success of the attacker's.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped] # it has none

from tests import marked

_HERE = "tests/security/"
_CLUSTERS = {
    "kueue": (f"{_HERE}queued/",),
    "cluster": (f"{_HERE}live/", f"{_HERE}test_secrets_leaving.py", f"{_HERE}test_fuzz_accepted.py"),
}
"""Files whose tests share a cluster, which takes a while to start."""
_LONG = (f"{_HERE}test_fuzz.py", f"{_HERE}test_servers.py", f"{_HERE}test_archive_damage.py")


@pytest.hookimpl(trylast=True)  # the suite's report is made first
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "attack(attacker, wants): who attacks, and what they would gain")
    figures = ("attacks", None, "attacks_succeeded")
    marked.Tally.register(config, "attack", ("attacker", "wants"), same=lambda test, _: test, figures=figures)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    outcome = yield
    marked.note(item, "attack", outcome)


class ByCluster(LoadScopeScheduling):  # type: ignore[misc] # it has no types
    """Shares the suite between processes: tests of one cluster run in one, others by file."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((cluster for cluster, files in _CLUSTERS.items() if file.startswith(files)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByCluster:
    return ByCluster(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no process waits for another at the end."""
    first = [file for files in _CLUSTERS.values() for file in files] + list(_LONG)
    items.sort(key=lambda item: next((i for i, file in enumerate(first) if item.nodeid.startswith(file)), len(first)))
