"""What the hub server shows of itself to Prometheus, beside what `kube.metrics` counts of any process.

    trainplane_hub_worker_connected{cluster}           1 while a worker answers and shows its pods
    trainplane_hub_log_streams{cluster}                logs that are followed; ..._limit: as many may be on a cluster
    trainplane_hub_log_streams_refused_total{cluster}  times that a log found no place among them
    trainplane_hub_log_gaps_total                      times that lines of a log were found to be lost
    trainplane_hub_pods_refused_total                  pods that said they are a TrainJob's and are not
    trainplane_hub_kept_bytes, ..._files               what is on the volume; ..._limit: the bound of it
    trainplane_hub_set_aside_total                     files of the volume that could not be believed
    trainplane_hub_readers                             logs that users read now
    trainplane_hub_requests_total{verb, subresource, code}

All but the last are looked up when they are asked for, so counting costs nothing. `manifests/hub/alerts.yaml` says when
somebody should look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import Counter
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from trainplane.api import names
from trainplane.hub.apiserver.api import target_of
from trainplane.kube.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

    from trainplane.hub.apiserver.readers import Readers
    from trainplane.hub.logarchive.archive import Archive
    from trainplane.hub.logarchive.collector import LogCollector

_PREFIX: Final = "trainplane_hub"


class HubMetrics(Collector):
    """Shows how a collector, an archive and its readers do, and counts requests."""

    def __init__(
        self, registry: CollectorRegistry, collector: LogCollector, archive: Archive, readers: Readers
    ) -> None:
        self._collector = collector
        self._archive = archive
        self._readers = readers
        self._requests = Counter(
            f"{_PREFIX}_requests_total",
            "Requests that were answered.",
            ("verb", "subresource", "code"),
            registry=registry,
        )
        registry.register(self)

    def answered(self, method: str, path: str, code: int) -> None:
        """Count a request; whatever was asked, there are few label values."""
        try:
            target = target_of(path)
        except NotFoundError:
            verb, subresource = "other", ""
        else:
            verb, subresource = "get" if target.name else "list", target.subresource
        self._requests.labels(verb if method == "GET" else "other", subresource, str(code)).inc()

    def collect(self) -> Iterator[Metric]:
        """Yield what is so now."""
        yield from self._of_workers()
        yield from self._of_the_volume()
        collector = self._collector
        yield _counter("log_gaps", "Times that lines of a log were found to be lost.", collector.gaps)
        yield _counter("pods_refused", "Pods that said that they are a TrainJob's and are not.", collector.refused)
        yield _gauge("readers", "Logs that users read now.", self._readers.count)

    def _of_workers(self) -> Iterator[Metric]:
        collector, labels = self._collector, ("cluster",)
        connected = GaugeMetricFamily(
            f"{_PREFIX}_worker_connected", "1 while a worker answers and shows its pods.", labels=labels
        )
        for name in collector.workers:
            mirror = collector.mirrors.get(name)
            connected.add_metric([name], float(mirror is not None and mirror.problem is None))
        streams = GaugeMetricFamily(f"{_PREFIX}_log_streams", "Logs that are followed.", labels=labels)
        refused = CounterMetricFamily(
            f"{_PREFIX}_log_streams_refused", "Times that a log found no place to be followed.", labels=labels
        )
        for name, places in collector.streams.items():
            streams.add_metric([name or names.CLUSTER_HUB], places.open)
            refused.add_metric([name or names.CLUSTER_HUB], places.refused)
        yield from (connected, streams, refused)
        yield _gauge("log_streams_limit", "Logs that may be followed on one cluster.", collector.settings.streams)

    def _of_the_volume(self) -> Iterator[Metric]:
        usage, bounds = self._archive.usage, self._archive.retention
        yield _gauge("kept_bytes", "Bytes that what is kept takes of the volume.", usage.bytes)
        yield _gauge("kept_bytes_limit", "Bytes that it may take.", bounds.total_bytes)
        yield _gauge("kept_files", "Files and folders of it.", usage.files)
        yield _gauge("kept_files_limit", "Files and folders that there may be.", bounds.total_files)
        text = "Files on the volume that could not be believed."
        yield _counter("set_aside", text, self._archive.set_aside.count)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{_PREFIX}_{name}", text, value=value)


def _counter(name: str, text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(f"{_PREFIX}_{name}", text, value=value)
