"""Dashboard and alerts of the installed chart, by a real Prometheus that scrapes the real operator (with FULL=1).

The tests are steps of one story and run in order; the last one takes the operator away.
"""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING

import pytest

from deploy.monitoring import ALERTS
from lab import jobset, node, prometheus
from lab.cluster import Cluster
from lab.processes import wait_for
from tests import promql
from tests.install.admin import MANAGER, MONITORED, NAMESPACE, OPERATOR, RELEASE, Admin, train_job

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.prometheus import Prometheus
    from tests.suite import SuiteReport

pytestmark = pytest.mark.full
WINDOW = 300
"""Seconds back that hold the whole run."""


@pytest.fixture(scope="module")
def admin(archived: Path) -> Iterator[Admin]:
    """Return the admin of a cluster with the Prometheus operator's CRDs and our release, monitored."""
    assert archived.exists()
    cluster = Cluster.up(f"monitored-{os.getpid()}", owned=True)
    try:
        jobset.install(cluster)
        node.install(cluster)
        node.give(cluster, "operator")
        prometheus.install_crds(cluster)
        found = Admin(cluster)
        found.make_namespace()
        found.install(*MONITORED)
        yield found
    finally:
        cluster.down()


@pytest.fixture(scope="module")
def watcher(admin: Admin) -> Prometheus:
    """Return a Prometheus that has the chart's ServiceMonitor and alerts, and has seen both replicas."""
    monitor = admin.cluster.get("servicemonitor", MANAGER, "-n", NAMESPACE)
    rule = admin.cluster.get("prometheusrule", MANAGER, "-n", NAMESPACE)
    found = prometheus.Prometheus.install(admin.cluster, monitor, rule, interval="1s")
    wait_for("both replicas' metrics", lambda: len(found.query(f"up{{{OPERATOR}}} == 1")) == 2, seconds=60)
    return found


def test_no_alert_fires_while_jobs_come_and_go(admin: Admin, watcher: Prometheus) -> None:
    admin.add_runtime()
    admin.train("first")
    admin.add_runtime("endless", says="import time; time.sleep(600)")
    admin.cluster.kubectl("create", "-f", "-", stdin=train_job("active", 1, "endless"))
    held = train_job("held", 1).replace("spec:\n", "spec:\n  suspend: true\n")
    admin.cluster.kubectl("create", "-f", "-", stdin=held)
    admin.train("second")
    wait_for("the rules", lambda: all(rule["health"] != "unknown" for rule in watcher.rules()), seconds=30)
    found = {rule["name"]: (rule["health"], rule.get("lastError", ""), rule["state"]) for rule in watcher.rules()}
    assert found == {alert.name: ("ok", "", "inactive") for alert in ALERTS}


def test_an_api_server_that_is_away_is_seen(admin: Admin, watcher: Prometheus) -> None:
    admin.cluster.kill("kube-apiserver")
    lost = f'rest_client_requests_total{{{OPERATOR}, code="<error>"}}'
    wait_for("requests without an answer", lambda: bool(watcher.query(lost)), seconds=60)
    admin.cluster.revive("kube-apiserver")
    admin.cluster.wait_ready()
    failed = f"reflector_failures_total{{{OPERATOR}}}"
    wait_for("watches that failed", lambda: bool(watcher.query(failed)), seconds=60)
    admin.train("third")


def test_no_query_of_the_dashboard_is_empty(admin: Admin, watcher: Prometheus, report: SuiteReport) -> None:
    shown = admin.cluster.get("configmap", f"{RELEASE}-dashboard", "-n", NAMESPACE)
    assert shown["metadata"]["labels"]["grafana_dashboard"] == "1"
    tree = json.loads(shown["data"]["trainplane-operator.json"])
    queries = [target["expr"] for panel in tree["panels"] for target in panel.get("targets", ())]
    values = {"$namespace": NAMESPACE, "$job": MANAGER, "$__rate_interval": "30s"}
    empty = [query for query in queries if not _has_values(watcher, _filled(query, values))]
    report.figure("dashboard_queries", len(queries))
    report.figure("dashboard_queries_empty", len(empty))
    assert len(queries) > 20
    assert empty == []


def test_the_dashboard_finds_the_operator_by_itself(watcher: Prometheus) -> None:
    """Its variables list what these queries do: Grafana's `label_values` reads the labels of a metric's series."""
    (series,) = {
        (one["metric"]["namespace"], one["metric"]["job"])
        for one in watcher.query("trainplane_trainjob_start_seconds_count")
    }
    assert series == (NAMESPACE, MANAGER)


def test_every_series_of_every_alert_is_there(watcher: Prometheus) -> None:
    names = set().union(*(promql.metrics(alert.query) for alert in ALERTS))
    missing = [name for name in names if not watcher.query_range(f"{name}{{{OPERATOR}}}", WINDOW)]
    assert missing == []


def test_an_operator_that_is_gone_is_told(admin: Admin, watcher: Prometheus) -> None:
    admin.cluster.kubectl("scale", "deployment", MANAGER, "-n", NAMESPACE, "--replicas=0")

    def told() -> bool:
        (rule,) = (one for one in watcher.rules() if one["name"] == "TrainplaneDown")
        return bool(rule["state"] == "pending")

    wait_for("TrainplaneDown", told, seconds=60)


def _filled(query: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        query = query.replace(name, value)
    return query


def _has_values(watcher: Prometheus, query: str) -> bool:
    series = watcher.query_range(query, WINDOW)
    return any(math.isfinite(float(value)) for one in series for _, value in one["values"])
