"""`make bench-life`: whole lives of jobs, ours and the reference, with JobSet, Kueue and simulated nodes in the path.

One cluster for each side, both up at once; runs alternate between them, first without Kueue, then with it. Requests are
counted in the API servers' audit logs. Machines swing: CPU and times are compared within a repeat, and also by what
engines took there that do the same on both sides (`lives.YARDSTICK`).
"""

from __future__ import annotations

import statistics
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import pytest

from benchmarks.disturbance import Others
from benchmarks.life.lives import live
from benchmarks.life.stage import OPERATORS, Side
from tests.size import sized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.life.lives import Run
    from tests.suite import SuiteReport

JOBS = sized(24, full=150)
REPEATS = sized(1, full=3)
MOST_REQUESTS: Final = 7.0
"""Requests of our operator for one life without Kueue: snapshot, JobSet, the status of its end, one Event; a status if
it runs for longer than a second or two, and one more, with an Event, where machines are so slow that it is pending for
longer than people are left without a word. The goal is 4."""
MOST_REQUESTS_KUEUE: Final = 10.5
"""The same under Kueue: snapshot, two JobSets, four statuses, and an Event or two; one more of each where it is slow.
The goal is 9."""

Runs = dict[str, list["Run"]]
"""Side → its runs of one mode, in the order of repeats."""


@pytest.fixture(scope="module")
def sides() -> Iterator[list[Side]]:
    """Return both sides, without Kueue."""
    sides = Side.up(*OPERATORS)
    try:
        yield sides
    finally:
        for side in sides:
            side.down()


def _measure(sides: list[Side], report: SuiteReport, *, kueue: bool) -> Runs:
    """Let jobs live on both sides in turn; which one begins alternates as well."""
    mode = "kueue" if kueue else "plain"
    runs: Runs = {side.name: [] for side in sides}
    for repeat in range(REPEATS):
        for side in sides if repeat % 2 == 0 else reversed(sides):
            others = Others(*(cluster for one in sides for cluster in one.clusters))
            run = live(side, f"life-{mode}-{repeat}", JOBS, kueue=kueue)
            assert run.jobs == JOBS, f"{side.name}: {run.jobs} of {JOBS} jobs came to their end"
            runs[side.name].append(run)
            taken = others.share()
            report.row(mode=mode, repeat=repeat, others_share=round(taken, 3), **run.row())
            report.figure("others_share", max(taken, report.figures.get("others_share", 0.0)))
    return runs


def _median(runs: list[Run], value: Callable[[Run], float]) -> float:
    return statistics.median(value(run) for run in runs)


def _ratio(runs: Runs, value: Callable[[Run], float]) -> float:
    """Return ours to the reference's, the median over repeats."""
    pairs = zip(runs["ours"], runs["reference"], strict=True)
    return statistics.median(value(ours) / value(theirs) for ours, theirs in pairs)


def _spread(runs: list[Run], value: Callable[[Run], float]) -> float:
    """Return how far repeats are apart, as a share of their median."""
    values = [value(run) for run in runs]
    return (max(values) - min(values)) / statistics.median(values)


def _operator_cpu(run: Run) -> float:
    return run.cpu_ms(run.operator)


def _server_cpu(run: Run) -> float:
    return run.cpu_ms("kube-apiserver")


def _time(name: str) -> Callable[[Run], float]:
    return lambda run: float(run.times[name])


_speed = _time("jobs_per_s")
_create = _time("created_p99_s")


def _record(runs: Runs, report: SuiteReport, suffix: str) -> None:
    """Record what one mode took."""
    for side, own in runs.items():
        report.figure(f"{side}_requests{suffix}", _median(own, lambda run: run.requests))
        report.figure(f"{side}_all_requests{suffix}", _median(own, lambda run: run.all_requests))
        report.figure(f"{side}_cpu_ms{suffix}", _median(own, _operator_cpu))
        report.figure(f"{side}_apiserver_cpu_ms{suffix}", _median(own, _server_cpu))
        report.figure(f"{side}_yardstick_cpu_ms{suffix}", _median(own, lambda run: run.yardstick))
        report.figure(f"{side}_kilobytes{suffix}", _median(own, lambda run: run.kilobytes(run.operator)))
        report.figure(f"{side}_jobs_per_s{suffix}", _median(own, _speed))
        for moment in ("created", "admitted", "running", "complete"):
            for quantile in ("p50", "p99"):
                name = f"{moment}_{quantile}_s"
                if name in own[0].times:
                    report.figure(f"{side}_{name}{suffix}", _median(own, _time(name)))
        if REPEATS > 1:
            report.figure(f"{side}_requests_spread{suffix}", _spread(own, lambda run: run.requests))
            report.figure(f"{side}_cpu_spread{suffix}", _spread(own, _operator_cpu))
            report.figure(f"{side}_apiserver_cpu_spread{suffix}", _spread(own, _server_cpu))
            report.figure(f"{side}_jobs_spread{suffix}", _spread(own, _speed))
    report.figure(f"ours_to_reference_jobs{suffix}", _ratio(runs, _speed))
    report.figure(f"ours_to_reference_jobs_by_yardstick{suffix}", _ratio(runs, lambda run: _speed(run) * run.yardstick))
    report.figure(f"cpu_ratio{suffix}", _ratio(runs, _operator_cpu))
    report.figure(f"cpu_ratio_by_yardstick{suffix}", _ratio(runs, lambda run: _operator_cpu(run) / run.yardstick))


def test_lives_without_kueue(sides: list[Side], report: SuiteReport) -> None:
    runs = _measure(sides, report, kueue=False)
    _record(runs, report, "")
    assert report.figures["ours_requests"] <= MOST_REQUESTS


def test_lives_under_kueue(sides: list[Side], report: SuiteReport) -> None:
    with ThreadPoolExecutor(len(sides)) as pool:
        list(pool.map(Side.add_kueue, sides))
    runs = _measure(sides, report, kueue=True)
    _record(runs, report, "_kueue")
    report.figure("apiserver_cpu_ratio", _ratio(runs, _server_cpu))
    report.figure("apiserver_cpu_ratio_by_yardstick", _ratio(runs, lambda run: _server_cpu(run) / run.yardstick))
    report.figure("create_p99_ratio", _ratio(runs, _create))
    assert report.figures["ours_requests_kueue"] <= MOST_REQUESTS_KUEUE
