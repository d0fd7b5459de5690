"""What a TrainJob costs does not grow with how many there are, and nothing is lost at scale.

CI judges what is counted, which is the same in every run of a seed. CPU is judged with FULL=1 alone: there are enough
TrainJobs then for a walk over all of them to show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.simulation.scale import SHIPPED, run
from tests.size import FULL, sized

if TYPE_CHECKING:
    from tests.suite import SuiteReport

SIZES = sized((200, 2_000), full=(1_000, 10_000, 100_000))
LIVED = sized(60, full=500)
FLAPPING = sized(100, full=5_000)
MOST = 1.2
"""How much dearer a TrainJob may be among many."""
COUNTED = ("requests", "events", "event_bytes", "reconciles", "changes")
STATUSES = 5
"""Writes that an eviction may cost: Suspended, Queued, Pending, Running, and counts that came between two of them."""


@pytest.mark.timeout(3 * 3600)
def test_a_job_costs_the_same_however_many_there_are(report: SuiteReport) -> None:
    run(20, 10)  # what Python does once is no job's cost
    runs = [run(size, LIVED) for size in SIZES]
    lease = SHIPPED.lease()
    assert lease is not None
    for one in runs:
        assert one["is_over"], "every TrainJob ends"
        storm, work, _ = one["rows"]
        for row in one["rows"]:
            report.row(scale=one["jobs"], **row)
        assert storm["writes"] == 0, "a restart writes nothing anew"
        assert storm["reconciles"] <= 1.01, "and looks at each TrainJob once"
        assert one["silent_seconds"] <= lease.lease_duration + 3 * lease.retry_period
        assert all(work[name] <= MOST * runs[0]["rows"][1][name] for name in COUNTED), work
        assert one["held_bytes_per_job"] <= MOST * runs[0]["held_bytes_per_job"]
    few, many = runs[0], runs[-1]
    ratio = many["probes_per_job"] / few["probes_per_job"]
    report.figure("cost_ratio_100k" if FULL else "cost_ratio_2k", ratio)
    for name in ("cpu_ms_per_job", "held_bytes_per_job", "silent_seconds"):
        report.figure(name, many[name])
    report.figure("requests_per_job", many["rows"][1]["requests"])
    report.figure("storm_cpu_ms_per_job", many["rows"][0]["cpu_ms"])
    assert not FULL or ratio <= MOST


@pytest.mark.timeout(3600)
def test_trainjobs_of_a_worker_that_flaps_end_elsewhere(report: SuiteReport) -> None:
    calm, flapping = (run(FLAPPING, FLAPPING, flaps=flaps) for flaps in (0, 4))
    assert flapping["evicted"] > 0
    assert calm["is_over"]
    assert flapping["is_over"]
    more = (flapping["rows"][0]["writes"] - calm["rows"][0]["writes"]) * FLAPPING
    report.row(scale=FLAPPING, **flapping["rows"][0], evicted=flapping["evicted"])
    if FULL:  # of a few evictions, chance is most
        report.figure("writes_per_eviction", more / flapping["evicted"])
    assert more <= STATUSES * flapping["evicted"]
