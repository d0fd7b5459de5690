"""Kueue computes a TrainJob's pods by itself: they must be the pods that we make."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fleet import objects
from tests.fleet.one_cluster import podsets
from tests.fleet.one_cluster.runtimes import in_namespace, runtime, step
from trainplane.api.quantity import Quantity

if TYPE_CHECKING:
    from tests.fleet.objects import Tree
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


@pytest.mark.scenario("I-no-policy", "quota of a runtime without a policy is what its pods ask for")
def test_quota_of_a_runtime_without_a_policy_is_what_its_pods_ask_for(team: Team) -> None:
    team.open_queue({"cpu": "20", "memory": "20Gi"})
    cache = step("cache-initializer", ancestor=None, requests={"cpu": "500m"})
    team.create(runtime("bare", team.namespace, cache, step(requests={"cpu": "1", "memory": "2Gi"}), policy={}))
    job = objects.train_job("job", team.namespace, **in_namespace("bare"))
    job["spec"]["trainer"] = {"numNodes": 3, "resourcesPerNode": {"requests": {"cpu": "3"}}}
    team.create_seen(job)
    team.wait_running("job", pods=4)
    asked = [Quantity.of(_request(pod, "cpu")) for pod in team.pods("job")]
    assert sorted(map(str, asked)) == ["3", "3", "3", "500m"]
    assert _charged(team, "cpu") == sum(asked, Quantity.of("0"))
    assert _charged(team, "memory") == Quantity.of("6Gi")


def _request(pod: Tree, resource: str) -> str:
    (container,) = pod["spec"]["containers"]
    return str(container["resources"]["requests"][resource])


def _charged(team: Team, resource: str) -> Quantity:
    """Return what Kueue has charged the team's queue for when it admitted the job."""
    assigned = (team.workload("job") or {})["status"]["admission"]["podSetAssignments"]
    return sum((Quantity.of(one["resourceUsage"].get(resource, "0")) for one in assigned), Quantity.of("0"))
