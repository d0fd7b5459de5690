"""`python -m docs.metrics [--check]`: write docs/references/metrics.md from the code, or say that it is stale.

Every metric of operator and hub with its type, its labels and the words that Prometheus shows. When to look at one and
what to do then, docs/operations.md says.
"""  # noqa: INP001 a command beside the page it writes, no package

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from docs.emitted import cell, emit, table
from trainplane.hub.metrics import HubMetrics
from trainplane.kube.clock import SystemClock
from trainplane.kube.metrics import Metrics
from trainplane.operator.metrics import TrainJobMetrics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric

PAGE = Path(__file__).parent / "references" / "metrics.md"
_HEAD = """\
# Metrics

<!-- written by docs/metrics.py from src/trainplane: change the words there, then run `make manifests` -->

Names are controller-runtime's and client-go's where these have one. [Operations](../operations.md#metrics) says when to
look at each, and what to do; a dashboard and [alerts](../operations.md#alerts) come with the chart."""


class Nothing:
    """Workers, an archive and readers that have nothing: a metric's name does not depend on what it counts."""

    def __getattr__(self, name: str) -> Any:
        """Return nothing, in the form that is asked for."""
        empty: dict[str, Any] = {"workers": (), "mirrors": {}, "streams": {}}
        numbers = {"bytes", "files", "total_bytes", "total_files", "count", "gaps", "refused"}
        return 0 if name in numbers else empty.get(name, self)

    def __float__(self) -> float:
        """Return no amount."""
        return 0.0


def operator_registry() -> CollectorRegistry:
    """Return the operator's metrics, before anything was counted."""
    metrics = Metrics(SystemClock())
    TrainJobMetrics(metrics.registry)
    return metrics.registry


def hub_registry() -> CollectorRegistry:
    """Return the hub's metrics, before anything was counted."""
    registry = CollectorRegistry()
    nothing: Any = Nothing()
    HubMetrics(registry, nothing, nothing, nothing)
    return registry


def name_of(metric: Metric) -> str:
    """Return the name by which a query asks for a metric."""
    return f"{metric.name}_total" if metric.type == "counter" else metric.name


def write_page() -> str:
    """Return the page."""
    parts = [_HEAD]
    for title, registry in (("Operator", operator_registry()), ("Hub", hub_registry())):
        parts += [f"## {title}", table(("metric", "type", "labels", ""), sorted(_rows(registry)))]
    return "\n\n".join(parts) + "\n"


def _rows(registry: CollectorRegistry) -> Iterator[tuple[str, ...]]:
    labels = _labels(registry)
    for metric in registry.collect():
        names = labels.get(metric.name, getattr(metric, "_labelnames", ()))
        yield f"`{name_of(metric)}`", metric.type, ", ".join(f"`{one}`" for one in names), cell(metric.documentation)


def _labels(registry: CollectorRegistry) -> dict[str, tuple[str, ...]]:
    """Return the labels of metrics that are counted as things happen; the others say theirs when they are read."""
    collectors: Any = registry._collector_to_names  # noqa: SLF001 the library has no other way to ask
    return {one._name: one._labelnames for one in collectors if hasattr(one, "_labelnames")}  # noqa: SLF001 the same


def main(arguments: list[str] | None = None) -> int:
    """Write or check; 1 if the page is stale."""
    return emit(PAGE, write_page, "the code", arguments)


if __name__ == "__main__":
    sys.exit(main())
