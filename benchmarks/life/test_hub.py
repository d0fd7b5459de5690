"""Whole lives of jobs that are sent to a hub and run on one of two workers: ours, then the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from benchmarks.life.lives import live
from benchmarks.life.stage import OPERATORS, Side

if TYPE_CHECKING:
    from benchmarks.life.stage import SideName
    from tests.suite import SuiteReport

JOBS: Final = 60


@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", OPERATORS)
def test_lives_through_a_hub(name: SideName, report: SuiteReport) -> None:
    side = Side.up_hub(name)
    try:
        run = live(side, "life-hub", JOBS, kueue=True)
    finally:
        side.down()
    assert run.jobs == JOBS
    report.row(mode="hub", **run.row())
    report.figure(f"{name}_requests_hub", run.requests)
    report.figure(f"{name}_cpu_ms_hub", run.cpu_ms(run.operator))
    report.figure(f"{name}_apiserver_cpu_ms_hub", run.cpu_ms("kube-apiserver"))
    report.figure(f"{name}_jobs_per_s_hub", run.times["jobs_per_s"])
    report.figure(f"{name}_complete_p99_s_hub", run.times["complete_p99_s"])
