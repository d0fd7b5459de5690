"""Many jobs in one queue of one cluster, ours and the reference one after the other; up to half an hour each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from benchmarks.life import scale
from benchmarks.life.stage import OPERATORS, Side

if TYPE_CHECKING:
    from benchmarks.life.stage import SideName
    from tests.suite import SuiteReport

QUEUED: Final = 10_000
RUNNING: Final = 50
ADMISSIONS: Final = 100
THROUGH: Final = 2_000
AT_A_TIME: Final = 250
"""Jobs of two pods each: 500 pods."""
SECONDS: Final = 900.0
"""How long jobs may be sent, or pass; a slow machine sends fewer, and the report says how many."""


@pytest.mark.full
@pytest.mark.timeout(3 * SECONDS)
@pytest.mark.parametrize("name", OPERATORS)
def test_a_long_queue_of_which_few_run(name: SideName, report: SuiteReport) -> None:
    (side,) = Side.up(name)
    try:
        side.add_kueue()
        parts = scale.queued(side, QUEUED, RUNNING, seconds=SECONDS, admissions=ADMISSIONS)
        measured = {name: value for part in parts for name, value in part.items()}
    finally:
        side.down()
    report.row(mode="queued", side=name, **measured)
    for figure in ("queued_jobs", "admission_p50_s", "admission_p99_s", "admission_requests"):
        report.figure(f"{name}_{figure}", measured[figure])
    report.figure(f"{name}_queued_rss_mb", measured[f"{side.operator.engine}_rss_mb"])
    report.figure(f"{name}_admission_cpu_ms", measured[f"{side.operator.engine}_admission_cpu_ms"])
    for engine, short in ((side.operator.engine, "operator"), ("kueue", "kueue")):
        report.figure(f"{name}_restart_{short}_requests", measured[f"restart_{engine}_operator_requests"])


@pytest.mark.full
@pytest.mark.timeout(3 * SECONDS)
@pytest.mark.parametrize("name", OPERATORS)
def test_many_jobs_pass_though_operator_and_kueue_are_killed(name: SideName, report: SuiteReport) -> None:
    (side,) = Side.up(name)
    try:
        side.add_kueue()
        measured = scale.through(side, THROUGH, AT_A_TIME, seconds=SECONDS, restarts=True)
    finally:
        side.down()
    report.row(mode="through", **measured)
    report.figure(f"{name}_requests_through", measured["requests_per_job"])
    report.figure(f"{name}_jobs_per_s_through", measured["jobs_per_s"])
    report.figure(f"{name}_jobs_through", measured["jobs"])
