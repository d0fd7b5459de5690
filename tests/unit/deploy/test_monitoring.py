"""Dashboard and alerts ask for what the operator exports, and say what they mean."""

from __future__ import annotations

import re

import pytest

from deploy import dashboard
from deploy.monitoring import ALERTS, OPERATOR, ROWS, Alert
from tests import promql
from trainplane.kube.clock import SystemClock
from trainplane.kube.metrics import Metrics
from trainplane.operator.metrics import TrainJobMetrics

PANELS = [panel for row in ROWS.values() for panel in row]
QUERIES = [alert.query for alert in ALERTS] + [query for panel in PANELS for query in panel.queries.values()]
TARGET = {"namespace", "job", "pod", "le"}
"""Labels of a target, and of a histogram's buckets."""
_ENDINGS = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}


def exported() -> dict[str, set[str]]:
    """Return every series that the operator's registry declares, and the labels of its own."""
    metrics = Metrics(SystemClock())
    TrainJobMetrics(metrics.registry)
    found: dict[str, set[str]] = {"up": set()}
    for family in metrics.registry.collect():
        for ending in _ENDINGS[family.type]:
            found[family.name + ending] = set()
    for collector in metrics.registry._collector_to_names:
        for name in metrics.registry._collector_to_names[collector]:
            found.setdefault(name, set()).update(getattr(collector, "_labelnames", ()))
    return found


SERIES = exported()
UNNAMED = {"trainplane_trainjobs": {"exported_namespace", "runtime", "state"}, "workqueue_depth": {"name"}}
"""Labels of series that a collector makes when it is asked: it names none before."""


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_reads_what_the_operator_exports(query: str) -> None:
    read = promql.metrics(query)
    assert read
    assert read <= SERIES.keys()
    known = TARGET.union(*(SERIES[name] | UNNAMED.get(name, set()) for name in read))
    assert promql.labels(query) <= known


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_is_kept_to_the_release(query: str) -> None:
    """Each series that it reads: names of controller-runtime are every controller's."""
    bare = re.sub(r"\b(?:by|without) \([^)]*\)", "", query)
    named = re.findall(r"\b(\w+)\{([^}]*)\}", bare)
    assert {name for name, _ in named} == promql.metrics(query)
    assert all(matchers.startswith(OPERATOR) for _, matchers in named)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_says_only_what_it_knows(alert: Alert) -> None:
    used = set(re.findall(r"\{\{ \$labels\.(\w+) \}\}", alert.meaning))
    aggregated = re.search(r"\b(?:sum|max|absent)\b", alert.query)
    assert used <= (promql.kept(alert.query) - {"le"} if aggregated else {"pod"})
    assert alert.meaning.endswith(".")
    assert alert.todo


def test_names_are_each_once() -> None:
    names = [alert.name for alert in ALERTS]
    titles = [panel.title for panel in PANELS]
    assert len(set(names)) == len(names)
    assert len(set(titles)) == len(titles)


def test_every_alert_stands_on_the_page_with_its_time() -> None:
    rows = re.findall(r"^\| `(Trainplane\w+)` \| (\w+), (.*?) \|", dashboard.files()[dashboard.PAGE], re.MULTILINE)
    told = {name: (severity, lasting.replace("at once", "0m")) for name, severity, lasting in rows}
    assert told == {alert.name: (alert.severity, alert.lasting) for alert in ALERTS}


def test_panels_do_not_lie_on_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard.dashboard()["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken
        assert all(x < 24 for x, _ in cells)
        taken |= cells


@pytest.mark.parametrize(
    ("query", "metrics", "labels"),
    [
        ('sum by (a, b) (rate(x_total{c="by (z) y{"}[5m])) > 0.1', {"x_total"}, {"a", "b", "c"}),
        ('absent(up{j=~"a", k!="b"} == 1) or p_q / on (l) r:s', {"up", "p_q", "r:s"}, {"j", "k", "l"}),
        ("histogram_quantile(0.99, sum by (le) (rate(x_bucket[$__rate_interval])))", {"x_bucket"}, {"le"}),
    ],
)
def test_names_are_found_in_a_query(query: str, metrics: set[str], labels: set[str]) -> None:
    assert promql.metrics(query) == metrics
    assert promql.labels(query) == labels
