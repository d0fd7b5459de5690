"""What there is to see of the operator, and when somebody must look: one table for dashboard, alerts and the page.

`$operator` in a query stands for the labels of one release's targets, as a ServiceMonitor gives them. TrainJobs' own
`namespace` is `exported_namespace` there, for a target's label goes first. Every replica mirrors all TrainJobs, so
replicas are never added up where they say the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

OPERATOR: Final = "$operator"
RATE: Final = "$__rate_interval"
"""Grafana's word for a span that fits both the zoom and the scrape interval."""


@dataclass(frozen=True)
class Alert:
    """A query that has an answer when somebody must look."""

    name: str
    query: str
    lasting: str
    """For how long it must have an answer: longer than a restart."""
    severity: Literal["critical", "warning", "info"]
    meaning: str
    todo: str
    elected: bool = False
    """Only where replicas elect a leader."""


@dataclass(frozen=True)
class Panel:
    """A graph: its queries by the legend of their series."""

    title: str
    why: str
    queries: dict[str, str]
    unit: str = "short"
    """Grafana's name of it."""


def _rate(metric: str, *labels: str) -> str:
    """Return the query of a counter's rate over all replicas, by labels."""
    by = f" by ({', '.join(labels)})" if labels else ""
    return f"sum{by} (rate({metric}{{{OPERATOR}}}[{RATE}]))"


def _largest(metric: str, label: str) -> str:
    """Return the query of a gauge on the replica where it is largest: the leader's."""
    return f"max by ({label}) ({metric}{{{OPERATOR}}})"


def _quantiles(metric: str, *quantiles: float) -> dict[str, str]:
    """Return the queries of a histogram's quantiles over all replicas."""
    rate = _rate(f"{metric}_bucket", "le")
    return {f"p{quantile:.0%}".rstrip("%"): f"histogram_quantile({quantile}, {rate})" for quantile in quantiles}


def _trainjobs(label: str, state: str = "") -> str:
    """Return the query that counts TrainJobs by a label, each once though every replica counts it."""
    chosen = f'{OPERATOR}, state="{state}"' if state else OPERATOR
    each = f"max by (exported_namespace, runtime, state) (trainplane_trainjobs{{{chosen}}})"
    return f"sum by ({label}) ({each})"


ALERTS: Final = (
    Alert(
        "TrainplaneDown",
        "absent(up{$operator} == 1)",
        "5m",
        "critical",
        "Prometheus reads metrics of no replica. If none runs, TrainJobs and runtimes cannot be written.",
        "`kubectl get pods`: none ready, read their logs and events; all ready, may Prometheus `get` `/metrics`?",
    ),
    Alert(
        "TrainplaneReplicaDown",
        "up{$operator} == 0",
        "15m",
        "warning",
        "{{ $labels.pod }} gives no metrics. The other replicas do its work; nothing is behind them.",
        "`kubectl describe pod` and its log say why it is not ready",
    ),
    Alert(
        "TrainplaneRestarts",
        "changes(process_start_time_seconds{$operator}[1h]) > 3",
        "0m",
        "warning",
        "{{ $labels.pod }} starts again and again.",
        "`kubectl logs --previous` has its last words; `OOMKilled`: raise `manager.resources`, see sizing",
    ),
    Alert(
        "TrainplaneNobodyLeads",
        "max(leader_election_master_status{$operator}) < 1",
        "5m",
        "critical",
        "Replicas run and none leads. TrainJobs are stored and do not start.",
        "the log says who holds the Lease; is it an operator elsewhere, or the reference? Can ours write it?",
        elected=True,
    ),
    Alert(
        "TrainplaneReconcilesFail",
        'sum(rate(controller_runtime_reconcile_errors_total{$operator, controller="trainjob_controller"}[10m])) > 0.1',
        "15m",
        "warning",
        "TrainJobs fail to be reconciled again and again.",
        "events `TrainJobResourcesCreationFailed` say what stands in the way: a quota, a webhook of others",
    ),
    Alert(
        "TrainplaneReconcilesGivenUp",
        "sum by (controller) (increase(controller_runtime_terminal_reconcile_errors_total{$operator}[15m])) > 0",
        "0m",
        "info",
        "An object of {{ $labels.controller }} was given up: trying again would not help.",
        "the log names it: an object that cannot be, or a fault of ours to report",
    ),
    Alert(
        "TrainplaneQueueLong",
        "max by (name) (workqueue_depth{$operator}) > 100",
        "10m",
        "warning",
        "More than a hundred keys of {{ $labels.name }} wait, and have for ten minutes.",
        "reconciles slow: is the API server? All workers busy and a core full: give the operator more CPU",
    ),
    Alert(
        "TrainplaneReviewsFail",
        'sum by (webhook, code) (rate(controller_runtime_webhook_requests_total{$operator, code!="200"}[5m])) > 0',
        "10m",
        "warning",
        "Reviews of {{ $labels.webhook }} end with {{ $labels.code }}. The writes that asked for them are refused.",
        "the operator's log says why: 500 is a fault of ours to report, 413 an object that is too large to be read",
    ),
    Alert(
        "TrainplaneReviewsSlow",
        "histogram_quantile(0.99, sum by (webhook, le) "
        "(rate(controller_runtime_webhook_latency_seconds_bucket{$operator}[10m]))) > 1",
        "10m",
        "warning",
        "One in a hundred reviews of {{ $labels.webhook }} takes over a second. After ten the write is refused.",
        "`event_loop_lag_seconds` high: more CPU, or fewer giants; else the API server is slow to be asked",
    ),
    Alert(
        "TrainplaneForbidden",
        'sum by (method) (increase(rest_client_requests_total{$operator, code="403"}[15m])) > 0',
        "15m",
        "warning",
        "The API server forbids the operator a {{ $labels.method }}.",
        "the log says which; compare the roles with the chart's, or with `rbac.secretNamespaces` for MPI and Flux",
    ),
    Alert(
        "TrainplaneCannotReachAPIServer",
        'sum(rate(rest_client_requests_total{$operator, code="<error>"}[5m])) '
        "> 0.1 * sum(rate(rest_client_requests_total{$operator}[5m]))",
        "10m",
        "warning",
        "More than one in ten requests gets no answer from the API server.",
        "does the API server run; does `networkPolicy.apiServerPorts` have its port; is DNS there?",
    ),
    Alert(
        "TrainplaneWatchesFail",
        "sum by (name, error) (increase(reflector_failures_total{$operator}[15m])) > 10",
        "15m",
        "warning",
        "The mirror of {{ $labels.name }} breaks again and again ({{ $labels.error }}).",
        "`ForbiddenError`: a right is missing; otherwise the way to the API server, or a proxy that cuts it",
    ),
    Alert(
        "TrainplaneSlow",
        "event_loop_lag_seconds{$operator} > 1",
        "5m",
        "warning",
        "{{ $labels.pod }} is more than a second late with everything.",
        "give it more CPU; the log names objects that are heavy",
    ),
)
"""When somebody must look, the worst first."""

ROWS: Final = {
    "TrainJobs": (
        Panel("TrainJobs by state", "All that are in the cluster.", {"{{state}}": _trainjobs("state")}),
        Panel(
            "Active TrainJobs by namespace",
            "Who trains: TrainJobs that are neither suspended nor at their end.",
            {"{{exported_namespace}}": _trainjobs("exported_namespace", "active")},
        ),
        Panel(
            "Suspended TrainJobs by namespace",
            "Who waits: for Kueue, or because somebody holds them back. The hub view says why one is queued.",
            {"{{exported_namespace}}": _trainjobs("exported_namespace", "suspended")},
        ),
        Panel("TrainJobs by runtime", "What is used.", {"{{runtime}}": _trainjobs("runtime")}),
        Panel(
            "From creation to ready pods",
            "With a queue, its wait is in it; without one, it is nodes and images.",
            _quantiles("trainplane_trainjob_start_seconds", 0.5, 0.9),
            "s",
        ),
        Panel(
            "TrainJobs that start",
            "First ready pods, a minute.",
            {"a minute": f"60 * {_rate('trainplane_trainjob_start_seconds_count')}"},
        ),
    ),
    "Operator": (
        Panel(
            "Replicas that answer and lead",
            "As many as `manager.replicas`, and one that leads.",
            {
                "answer": f"sum(up{{{OPERATOR}}})",
                "lead": f"sum(leader_election_master_status{{{OPERATOR}}})",
            },
        ),
        Panel(
            "Reconciles by result",
            "What is done, a second; errors are tried again.",
            {"{{controller}} {{result}}": _rate("controller_runtime_reconcile_total", "controller", "result")},
            "ops",
        ),
        Panel(
            "Reconciles that fail",
            "All, those that are given up, and those over their deadline.",
            {
                word: _rate(f"controller_runtime_{metric}_total")
                for word, metric in (
                    ("failed", "reconcile_errors"),
                    ("given up", "terminal_reconcile_errors"),
                    ("too late", "reconcile_timeouts"),
                )
            },
            "ops",
        ),
        Panel(
            "Time of a reconcile",
            "Slow while the loop is not late: the API server is.",
            _quantiles("controller_runtime_reconcile_time_seconds", 0.5, 0.99),
            "s",
        ),
        Panel(
            "Keys that wait, and workers at work",
            "Workers all busy with keys behind them is what users feel as delay.",
            {
                "{{name}} wait": _largest("workqueue_depth", "name"),
                "{{controller}} at work": _largest("controller_runtime_active_workers", "controller"),
                "{{controller}} workers": _largest("controller_runtime_max_concurrent_reconciles", "controller"),
            },
        ),
        Panel(
            "How long a key waits",
            "Before the work on it begins.",
            _quantiles("workqueue_queue_duration_seconds", 0.5, 0.99),
            "s",
        ),
    ),
    "Webhooks": (
        Panel(
            "Reviews by code",
            "A TrainJob that is refused is a 200, too: another code is a review that failed.",
            {"{{webhook}} {{code}}": _rate("controller_runtime_webhook_requests_total", "webhook", "code")},
            "reqps",
        ),
        Panel(
            "Time of a review",
            "What a write pays for it; the API server gives up after ten seconds.",
            _quantiles("controller_runtime_webhook_latency_seconds", 0.5, 0.99),
            "s",
        ),
        Panel(
            "Reviews under way",
            "It stays up when the loop is late.",
            {"{{webhook}}": f"sum by (webhook) (controller_runtime_webhook_requests_in_flight{{{OPERATOR}}})"},
        ),
    ),
    "API server": (
        Panel(
            "Requests by code",
            "403: a right is missing. 429: it pushes back. <error>: no answer.",
            {"{{code}} {{method}}": _rate("rest_client_requests_total", "code", "method")},
            "reqps",
        ),
        Panel(
            "Objects in mirrors",
            "What memory goes by.",
            {"{{name}}": _largest("reflector_objects", "name")},
        ),
        Panel(
            "Lists, and watches that fail",
            "A few when an API server restarts; steadily, something cuts them.",
            {
                "{{name}} lists": _rate("reflector_lists_total", "name"),
                "{{name}} {{error}}": _rate("reflector_failures_total", "name", "error"),
            },
            "ops",
        ),
    ),
    "Process": (
        Panel(
            "How late the loop is",
            "The worst since the last scrape; everything waits for it.",
            {"{{pod}}": f"event_loop_lag_seconds{{{OPERATOR}}}"},
            "s",
        ),
        Panel(
            "CPU",
            "A replica fills one core at most.",
            {"{{pod}}": f"rate(process_cpu_seconds_total{{{OPERATOR}}}[{RATE}])"},
        ),
        Panel("Memory", "Resident.", {"{{pod}}": f"process_resident_memory_bytes{{{OPERATOR}}}"}, "bytes"),
        Panel(
            "Open files",
            "Of those that it may have.",
            {"{{pod}}": f"process_open_fds{{{OPERATOR}}} / process_max_fds{{{OPERATOR}}}"},
            "percentunit",
        ),
    ),
}
"""What there is to see: rows of the dashboard, from what users feel to what the process is made of."""
