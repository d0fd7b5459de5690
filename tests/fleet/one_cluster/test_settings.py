"""Under other settings of Kueue: jobs without a queue managed too, and little patience for pods to be ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab import kueue
from lab.processes import wait_for
from tests.fleet import objects
from tests.fleet.one_cluster.runtimes import in_namespace, runtime, step
from tests.fleet.one_cluster.team import PATIENCE, condition_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster
    from tests.fleet.one_cluster.team import Team

_MANAGED = {"lab.trainplane.dev/managed": "yes"}
_FETCH = "dataset-initializer"
_READY_SECONDS = 6
_SETTINGS = {
    "manageJobsWithoutQueueName": True,
    "managedJobsNamespaceSelector": {"matchLabels": _MANAGED},
    "waitForPodsReady": {
        "timeout": f"{_READY_SECONDS}s",
        "recoveryTimeout": "10m",
        "blockAdmission": False,
        "requeuingStrategy": {"timestamp": "Eviction", "backoffBaseSeconds": 1, "backoffMaxSeconds": 2},
    },
}


@pytest.fixture(scope="module", autouse=True)
def strict(kueue_cluster: Cluster) -> Iterator[None]:
    """Start Kueue anew, and once more with the settings of before; no Workload of another test is judged by them."""
    _wait_empty(kueue_cluster)
    before = kueue.reconfigure(kueue_cluster, **_SETTINGS)
    yield
    _wait_empty(kueue_cluster)
    kueue.reconfigure(kueue_cluster, **before)


def _wait_empty(cluster: Cluster) -> None:
    """Wait until the Workloads of other tests are gone."""
    wait_for("no Workloads", lambda: not cluster.get("workloads", "--all-namespaces")["items"], seconds=PATIENCE)


@pytest.mark.scenario(11, "manageJobsWithoutQueueName suspends jobs without a queue")
@pytest.mark.scenario(31, "a namespace that Kueue does not manage is untouched")
def test_jobs_without_a_queue_are_held_back_only_where_kueue_manages(team: Team) -> None:
    managed = team.neighbour("managed", **_MANAGED)
    free = team.submit("free", queue=None, runtime=objects.HELD)
    assert free["spec"]["suspend"] is False
    held = managed.submit("held", queue=None, runtime=objects.HELD)
    assert held["spec"]["suspend"] is True
    team.wait_running("free")
    assert team.workload("free") is None
    assert managed.suspended("held")
    assert not managed.pods("held")
    queue = managed.open_queue()
    managed.patch("trainjobs", "held", {"metadata": {"labels": {objects.QUEUE_LABEL: queue}}})
    managed.wait_running("held")


@pytest.mark.scenario("I-pods-ready", "the time of initializers counts against waitForPodsReady")
def test_a_job_whose_initializer_outlasts_the_timeout_is_evicted_and_tried_again(team: Team) -> None:
    """Kueue wants all steps ready, those that wait for others too: the timeout must allow for what is fetched."""
    team = team.neighbour("managed", **_MANAGED)
    team.open_queue()
    steps = (step(_FETCH, ancestor=_FETCH), step(after=(_FETCH,)))
    team.create(runtime("fetching", team.namespace, *steps))
    initializer = {"dataset": {"storageUri": "hf://tatsu-lab/alpaca"}}
    team.submit("job", initializer=initializer, **in_namespace("fetching"))
    team.wait("its data to be fetched", lambda: team.active("job"))

    def evicted() -> bool:
        conditions = (team.workload("job") or {}).get("status", {}).get("conditions", [])
        reasons = [one["reason"] for one in conditions if one["type"] == "Evicted" and one["status"] == "True"]
        assert reasons in ([], ["PodsReadyTimeout"])
        return bool(reasons)

    team.wait("Kueue to lose patience", evicted)

    def ready() -> bool:
        team.end_pods("job", _FETCH)  # from now on it is fetched as soon as it is asked for
        return condition_of(team.workload("job") or {}, "PodsReady") == "True"

    team.wait("the job to be ready", ready)
    (trains,) = [one for one in team.job("job")["status"]["jobsStatus"] if one["name"] == "node"]
    assert trains["ready"] == 1
    freed = [{"name": _FETCH, "count": 1}]
    team.wait(
        "the pod to be reclaimable", lambda: (team.workload("job") or {})["status"].get("reclaimablePods") == freed
    )
