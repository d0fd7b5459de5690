"""How much of the machine others took while something was measured."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab.cluster import Cluster


class Others:
    """What processes that are not the run's own, and other machines on the same host, take of this machine.

    Processes of a lower priority than usual do not count: they have what nobody else wants.
    """

    def __init__(self, *clusters: Cluster) -> None:
        self._clusters = clusters
        self._begin = time.monotonic()
        self._used, self._own = _machine_cpu(), self._own_cpu()

    def share(self) -> float:
        """Return the share of all cores that others had since the beginning, while the driver still runs."""
        others = _machine_cpu() - self._used - (self._own_cpu() - self._own)
        return max(0.0, others / (time.monotonic() - self._begin) / (os.cpu_count() or 1))

    def _own_cpu(self) -> float:
        engines = [engine for cluster in self._clusters for engine in cluster.engines().values()]
        return time.process_time() + sum(engine.process.cpu_seconds() for engine in engines)


def _machine_cpu() -> float:
    """Return the seconds that all cores were busy, or held by the host, but for those of a lower priority."""
    user, _, system, _, _, irq, softirq, steal, *_ = map(int, Path("/proc/stat").read_text().split()[1:11])
    return (user + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
