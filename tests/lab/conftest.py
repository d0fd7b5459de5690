"""What the lab's own tests share: measuring a profile while it runs."""

from __future__ import annotations

import contextlib
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from lab import profiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from lab.cluster import Cluster
    from tests.suite import SuiteReport


@pytest.fixture(scope="session")
def measured(report: SuiteReport) -> Callable[[str], AbstractContextManager[tuple[Cluster, ...]]]:
    """Return a way to bring a profile up that records its start time, peak memory and disk in the report."""

    @contextlib.contextmanager
    def bring_up(profile: str) -> Iterator[tuple[Cluster, ...]]:
        start = time.monotonic()
        clusters = profiles.up(profile, f"self-{profile}", owned=True)
        report.figure(f"{profile}_start_s", time.monotonic() - start)
        try:
            yield clusters
            peak = sum(engine.process.peak_rss_mb() for cluster in clusters for engine in cluster.engines().values())
            report.figure(f"{profile}_peak_memory_mb", peak)
            report.figure(f"{profile}_disk_mb", sum(_disk_mb(cluster) for cluster in clusters))
        finally:
            for cluster in clusters:
                cluster.down()

    return bring_up


def _disk_mb(cluster: Cluster) -> float:
    """Return what a cluster added to the disk; its image store is links into the cache and adds nothing."""
    command = ["du", "-sm", "--exclude=containerd", str(cluster.folder)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0])
