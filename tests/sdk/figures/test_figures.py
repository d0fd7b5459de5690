"""What our SDK costs, beside the official one, in one run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.sdk.official import measure
from trainplane import KubernetesBackendConfig, TrainerClient

if TYPE_CHECKING:
    from tests.suite import SuiteReport

IMPORT = "from trainplane import CustomTrainer, TrainerClient"
GOAL_IMPORT_S = 0.15
SLOWER = 3
"""A busy machine makes both imports slow: ours must then still be this many times as fast as the official one."""


def test_the_import_is_light(report: SuiteReport) -> None:
    official = measure.report_import(report)
    ours = measure.import_cost(IMPORT)
    bare = measure.import_cost("pass")
    report.figure("import_s", ours.seconds)
    report.figure("import_rss_mb", ours.rss_mb)
    report.figure("bare_rss_mb", bare.rss_mb)
    assert ours.seconds <= max(GOAL_IMPORT_S, official.seconds / SLOWER), (ours, official)
    assert ours.rss_mb < official.rss_mb / 2


@pytest.mark.timeout(2400)
def test_many_jobs_are_listed_in_two_requests(report: SuiteReport) -> None:
    with measure.many_jobs(measure.CROWD) as crowd:
        with TrainerClient(KubernetesBackendConfig(crowd.namespace, str(crowd.kubeconfig))) as client:
            client.list_runtimes()
            start = time.perf_counter()
            jobs = client.list_jobs()
            seconds = time.perf_counter() - start
        assert len(jobs) == crowd.jobs
        report.figure(f"list_{crowd.jobs}_jobs_s", seconds)
        official = measure.report_list(report, crowd)
    assert seconds < official / SLOWER
