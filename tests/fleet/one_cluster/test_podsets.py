"""Kueue computes a TrainJob's pods by itself: they must be the pods that we make."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fleet.one_cluster import podsets

if TYPE_CHECKING:
    from tests.fleet.one_cluster.podsets import Case
    from tests.fleet.one_cluster.team import Team


@pytest.mark.parametrize("case", podsets.CASES, ids=lambda case: case.name)
@pytest.mark.scenario("I-podsets", "names, counts and requests of Kueue's pod sets are those of the JobSet we make")
def test_kueue_counts_the_pods_that_we_make(team: Team, case: Case) -> None:
    team.open_queue({"cpu": "0", "memory": "0", "nvidia.com/gpu": "0"})
    team.create(case.runtime(team.namespace))
    team.create_seen(case.job(team.namespace))
    team.wait("a Workload", lambda: team.workload("job"))
    team.wait("a JobSet", lambda: team.find("jobsets", "job"))
    counted = podsets.of_workload(team.workload("job") or {})
    made = podsets.of_jobset(team.get("jobsets", "job"))
    assert counted == made
    assert any(one["count"] for one in counted)
