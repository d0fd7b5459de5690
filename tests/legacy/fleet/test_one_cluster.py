"""Kueue in one cluster, for every kind that it integrates: queued, admitted, preempted, and begun again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tests.fleet.team import true_condition
from tests.legacy.conftest import HIGH
from tests.legacy.fleet.jobs import Jobs
from trainplane.api.legacy.kinds import KINDS

if TYPE_CHECKING:
    from tests.fleet.team import MakeTeam
    from tests.suite import SuiteReport
    from trainplane.api.legacy.kinds import Kind

HERE = "worker1"
"""A cluster whose own queues send nothing away."""


def test_every_kind_is_queued_admitted_and_preempted(team: MakeTeam, report: SuiteReport) -> None:
    def story(kind: Kind) -> None:
        pods = min(2, len(kind.types))
        quotas = {HERE: {"cpu": str(pods)}}
        preemption = {"withinClusterQueue": "LowerPriority"}
        jobs = Jobs(team(quotas=quotas, checks=(), preemption=preemption), kind)
        jobs.submit("first", on=HERE)
        jobs.wait_condition("first", "Running", on=HERE)
        assert len(jobs.pods("first", on=HERE)) == pods

        jobs.submit("second", on=HERE)
        jobs.wait("second to be looked at", lambda: _waits(jobs, "second"))
        assert jobs.is_suspended("second", on=HERE)
        assert not jobs.pods("second", on=HERE)

        jobs.submit("urgent", on=HERE, priority=HIGH)
        jobs.wait_condition("urgent", "Running", on=HERE)
        jobs.wait_condition("first", "Suspended", on=HERE)
        assert jobs.is_suspended("first", on=HERE)
        jobs.wait("first to have no pods", lambda: not jobs.pods("first", on=HERE))

        jobs.end("urgent", on=HERE)
        jobs.wait_condition("urgent", "Succeeded", on=HERE)
        jobs.wait("first to run again", lambda: any(jobs.holds(one, "Running", on=HERE) for one in ("first", "second")))

    with ThreadPoolExecutor(len(KINDS)) as pool:
        list(pool.map(story, KINDS.values()))
    report.figure("kinds_queued_admitted_preempted", len(KINDS))


def _waits(jobs: Jobs, name: str) -> bool:
    workload = jobs.workload(name, on=HERE)
    if workload is None:
        return False
    assert true_condition(workload, "QuotaReserved") is None
    return bool((workload.get("status") or {}).get("conditions"))
