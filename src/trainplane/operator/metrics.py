"""What the operator counts of TrainJobs, beside what `kube.metrics` counts of its work.

    trainplane_trainjobs{namespace, runtime, state}    how many there are; state: active, suspended, finished, failed
    trainplane_trainjob_start_seconds                  from a TrainJob's creation to its first pods that are ready

States are counted as changes pass by, so a scrape costs the same with ten TrainJobs as with 100,000.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from trainplane.operator.stores import SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

    from trainplane.kube.store import Change

START_BUCKETS: Final = (1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0, 86400.0)
"""Upper bounds in seconds: from pods that start at once to a day in a queue."""


class TrainJobMetrics:
    """Counts TrainJobs by state, and how long they take to start."""

    def __init__(self, registry: CollectorRegistry) -> None:
        from prometheus_client import Histogram  # noqa: PLC0415 slow to import
        from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 as above
        from prometheus_client.registry import Collector  # noqa: PLC0415 as above

        counts = self._counts = Counter[str]()
        self._start = Histogram(
            "trainplane_trainjob_start_seconds",
            "Seconds from a TrainJob's creation to its first pods that are ready.",
            buckets=START_BUCKETS,
            registry=registry,
        )

        class TrainJobs(Collector):
            def collect(self) -> Iterator[Metric]:
                labels = ("namespace", "runtime", "state")
                family = GaugeMetricFamily("trainplane_trainjobs", "TrainJobs by state.", labels=labels)
                for value, count in counts.items():
                    family.add_metric(value.split(SEPARATOR), count)
                yield family

        registry.register(TrainJobs())

    def changed(self, change: Change) -> None:
        """Take in a change of the TrainJob store; a handler for its reflector."""
        for value in change.old.indexed[0] if change.old else ():
            self._counts[value] -= 1
            if not self._counts[value]:
                del self._counts[value]
        for value in change.new.indexed[0] if change.new else ():
            self._counts[value] += 1

    def started(self, seconds: float) -> None:
        """Note how long a TrainJob took from its creation to its first pods that are ready."""
        self._start.observe(seconds)
