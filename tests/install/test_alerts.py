"""The chart's alerts on made series, by promtool: each fires on its own fault and on no other's (with FULL=1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from deploy.monitoring import ALERTS
from lab.engines import binary
from lab.processes import run
from tests.install.admin import CHART, MONITORED, NAMESPACE, OPERATOR, RELEASE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.full
_POD = OPERATOR + ', pod="{}"'
A, B = _POD.format("a"), _POD.format("b")
HEALTHY = {
    f"up{{{A}}}": "1x120",
    f"up{{{B}}}": "1x120",
    f"process_start_time_seconds{{{A}}}": "1000x120",
    f"leader_election_master_status{{{A}}}": "1x120",
    f"leader_election_master_status{{{B}}}": "0x120",
    f'controller_runtime_reconcile_errors_total{{{A}, controller="trainjob_controller"}}': "7x120",
    f'controller_runtime_terminal_reconcile_errors_total{{{A}, controller="trainjob_controller"}}': "2x120",
    f'workqueue_depth{{{A}, name="trainjob_controller"}}': "30x120",
    f'controller_runtime_webhook_requests_total{{{A}, webhook="v", code="200"}}': "0+600x120",
    f'controller_runtime_webhook_requests_total{{{A}, webhook="v", code="500"}}': "3x120",
    f'controller_runtime_webhook_latency_seconds_bucket{{{A}, webhook="v", le="1"}}': "0+600x120",
    f'controller_runtime_webhook_latency_seconds_bucket{{{A}, webhook="v", le="10"}}': "0+600x120",
    f'controller_runtime_webhook_latency_seconds_bucket{{{A}, webhook="v", le="+Inf"}}': "0+600x120",
    f'rest_client_requests_total{{{A}, code="200", method="PATCH"}}': "0+600x120",
    f'rest_client_requests_total{{{A}, code="403", method="PATCH"}}': "1x120",
    f'rest_client_requests_total{{{A}, code="<error>", method="PATCH"}}': "0+6x120",
    f'reflector_failures_total{{{A}, name="jobsets", error="GoneError"}}': "0+1x5 5x115",
    f"event_loop_lag_seconds{{{A}}}": "0.2x120",
}
"""An operator at work: some failed in the past, few fail now."""
FAULTS = {
    "TrainplaneDown": {f"up{{{A}}}": "0x120", f"up{{{B}}}": "0x120"},
    "TrainplaneReplicaDown": {f"up{{{B}}}": "0x120"},
    "TrainplaneRestarts": {f"process_start_time_seconds{{{A}}}": "1000+900x120"},
    "TrainplaneNobodyLeads": {f"leader_election_master_status{{{A}}}": "0x120"},
    "TrainplaneReconcilesFail": {
        f'controller_runtime_reconcile_errors_total{{{A}, controller="trainjob_controller"}}': "0+12x120"
    },
    "TrainplaneReconcilesGivenUp": {
        f'controller_runtime_terminal_reconcile_errors_total{{{A}, controller="trainjob_controller"}}': "2x110 3x10"
    },
    "TrainplaneQueueLong": {f'workqueue_depth{{{A}, name="trainjob_controller"}}': "101x120"},
    "TrainplaneReviewsFail": {f'controller_runtime_webhook_requests_total{{{A}, webhook="v", code="500"}}': "3+1x120"},
    "TrainplaneReviewsSlow": {
        f'controller_runtime_webhook_latency_seconds_bucket{{{A}, webhook="v", le="1"}}': "0+580x120"
    },
    "TrainplaneForbidden": {f'rest_client_requests_total{{{A}, code="403", method="PATCH"}}': "1+1x120"},
    "TrainplaneCannotReachAPIServer": {
        f'rest_client_requests_total{{{A}, code="<error>", method="PATCH"}}': "0+90x120"
    },
    "TrainplaneWatchesFail": {f'reflector_failures_total{{{A}, name="jobsets", error="GoneError"}}': "0+1x120"},
    "TrainplaneSlow": {f"event_loop_lag_seconds{{{A}}}": "1.5x120"},
}
ALSO = {"TrainplaneDown": {"TrainplaneReplicaDown": 2}}
"""What fires with it."""


def test_an_alert_fires_on_its_fault_alone(tmp_path: Path) -> None:
    assert FAULTS.keys() == {alert.name for alert in ALERTS}
    options = (f"--namespace={NAMESPACE}", *MONITORED, "--show-only=templates/manager/monitoring.yaml")
    text = run([binary("helm"), "template", RELEASE, str(CHART), *options]).stdout
    (rule,) = (one for one in yaml.safe_load_all(text) if one and one["kind"] == "PrometheusRule")
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rule["spec"]))
    run([binary("promtool"), "check", "rules", str(tmp_path / "rules.yaml")])
    cases = {"healthy": _case("healthy", {}, {})}
    for name, fault in FAULTS.items():
        cases[name] = _case(name, fault, {name: 1, **ALSO.get(name, {})})
    tree = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": list(cases.values())}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(tree))
    run([binary("promtool"), "test", "rules", str(tmp_path / "test.yaml")])


def _case(name: str, fault: dict[str, str], firing: dict[str, int]) -> dict[str, Any]:
    """Return promtool's test: an hour and a half of an operator, and which alerts fire then, how often."""
    assert fault.keys() <= HEALTHY.keys()
    samples = [{"labels": f'{{alertname="{alert}"}}', "value": count} for alert, count in firing.items()]
    firing_now = {"expr": 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time": "115m"}
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in (HEALTHY | fault).items()],
        "promql_expr_test": [{**firing_now, "exp_samples": samples}],
    }
