"""The table of `deploy.monitoring` in the words of those who read it: Grafana, Prometheus and people."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import yaml

from deploy.chart import NOTE, REPOSITORY, TEMPLATES, escaped
from deploy.monitoring import ALERTS, OPERATOR, ROWS, Alert, Panel

DASHBOARD: Final = Path("charts/trainplane/files/dashboard.json")
RULES: Final = TEMPLATES / "_alerts.tpl"
PAGE: Final = Path("docs/operations.md")
_SOURCE: Final = "deploy/monitoring.py"
_OF_RELEASE: Final = 'namespace="{{ .Release.Namespace }}", job="{{ include "trainplane.service.name" . }}"'
_OF_VARIABLES: Final = 'namespace="$namespace", job="$job"'
_DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH, _HEIGHT, _ALL = 8, 8, 24
"""Of a panel and of the screen, in Grafana's grid: three panels beside each other."""
_TABLE: Final = re.compile(rf"(?<=<!-- written by make manifests from {_SOURCE} -->\n).*?(?=<!-- end -->)", re.DOTALL)


def files() -> dict[Path, str]:
    """Return the dashboard, the alerts' rules, and the page with their table."""
    page = _TABLE.sub(lambda _: _table(), (REPOSITORY / PAGE).read_text())
    return {DASHBOARD: json.dumps(dashboard(), indent=1) + "\n", RULES: _rules(), PAGE: page}


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it: the operator to look at is chosen on it, as is the Prometheus."""
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS.items():
        panels.append({"type": "row", "title": title, "gridPos": {"x": 0, "y": top, "w": _ALL, "h": 1}})
        across = _ALL // _WIDTH
        for place, panel in enumerate(row):
            down, right = divmod(place, across)
            panels.append(_panel(panel, right * _WIDTH, top + 1 + down * _HEIGHT))
        top += 1 + -(-len(row) // across) * _HEIGHT
    for number, one in enumerate(panels, start=1):
        one["id"] = number
    return {
        "uid": "trainplane-operator",
        "title": "Trainplane operator",
        "tags": ["trainplane", "kubernetes"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
                _variable("namespace", "label_values(trainplane_trainjob_start_seconds_count, namespace)"),
                _variable("job", 'label_values(trainplane_trainjob_start_seconds_count{namespace="$namespace"}, job)'),
            ]
        },
        "panels": panels,
    }


def _variable(name: str, query: str) -> dict[str, Any]:
    return {"name": name, "type": "query", "datasource": _DATASOURCE, "query": query, "refresh": 2, "sort": 1}


def _panel(panel: Panel, left: int, top: int) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + place), "datasource": _DATASOURCE, "legendFormat": legend, "expr": _chosen(query)}
        for place, (legend, query) in enumerate(panel.queries.items())
    ]
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.why,
        "datasource": _DATASOURCE,
        "gridPos": {"x": left, "y": top, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"tooltip": {"mode": "multi"}, "legend": {"displayMode": "list", "placement": "bottom"}},
        "targets": targets,
    }


def _chosen(query: str) -> str:
    return query.replace(OPERATOR, _OF_VARIABLES)


def _rules() -> str:
    """Return the alerts as a named template, for the release's own targets."""
    parts = [NOTE % _SOURCE, '{{- define "trainplane.alerts" -}}\n']
    for alert in ALERTS:
        text = yaml.safe_dump([_rule(alert)], sort_keys=False, width=1000)
        text = escaped(text).replace(OPERATOR, _OF_RELEASE)
        if alert.elected:
            text = "{{- if .Values.manager.config.leaderElection.leaderElect }}\n" + text + "{{- end }}\n"
        parts.append(text)
    return "".join(parts) + "{{- end }}\n"


def _rule(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.query,
        "for": alert.lasting,
        "labels": {"severity": alert.severity},
        "annotations": {"summary": alert.meaning, "description": alert.todo.replace("`", "")},
    }


def _table() -> str:
    """Return the alerts as a table for people."""
    lines = ["| alert | severity, after | what it means | what to do |", "|---|---|---|---|"]
    for alert in ALERTS:
        meaning = re.sub(r"\{\{ \$labels\.(\w+) \}\}", r"*\1*", alert.meaning)
        lasting = "at once" if alert.lasting == "0m" else alert.lasting
        lines.append(f"| `{alert.name}` | {alert.severity}, {lasting} | {meaning} | {alert.todo} |")
    return "\n".join(lines) + "\n"
