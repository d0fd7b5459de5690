"""Print which histories this run draws, and add up the figures of all its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.day import SEED
from tests.simulation.throughput import Span, seconds_busy
from tests.suite import KEY, is_helper

if TYPE_CHECKING:
    import pytest


def pytest_report_header() -> str:
    """Say how to run the same again."""
    return f"simulation: SEED={SEED} make simulation runs these histories again"


def pytest_unconfigure(config: pytest.Config) -> None:
    """Add up what the parts found, before the suite's report is written."""
    if is_helper(config):
        return
    report = config.stash[KEY]
    parts = [row for row in report.rows if "histories" in row]
    planted = [row for row in report.rows if "planted" in row]
    fleets = [row for row in report.rows if "fleet_histories" in row]
    if parts:
        histories = sum(row["histories"] for row in parts)
        busy = seconds_busy(Span(row["began"], row["ended"]) for row in parts)
        report.figure("seed", SEED)
        report.figure("histories", histories)
        report.figure("histories_per_s", histories / max(busy, 0.001))
        report.figure("cpu_s_per_history", sum(row["cpu_seconds"] for row in parts) / histories)
        report.figure("violations", sum(row["violations"] for row in parts))
    if fleets:
        report.figure("fleet_histories", sum(row["fleet_histories"] for row in fleets))
        report.figure("fleet_violations", sum(row["violations"] for row in fleets))
    models = [row for row in report.rows if "model" in row]
    if models:
        report.figure("model_histories", len(models))
        report.figure("model_disagreements", sum(row["disagreements"] > 0 for row in models))
    if planted:
        report.figure("planted", len(planted))
        report.figure("found", sum(row["found"] for row in planted))
