"""Other settings of Kueue: dispatchers, alpha gates, integrations. Its restarts are what takes time here, so few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

from lab.fleet import MULTIKUEUE
from tests.fleet import objects
from tests.fleet.api import Api
from tests.fleet.objects import HELD, KUEUE
from tests.fleet.team import true_condition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.fleet import Fleet
    from tests.fleet.team import MakeTeam, Team

INCREMENTAL = "kueue.x-k8s.io/multikueue-dispatcher-incremental"
ORDERED = "ordered"
GATES = {"VisibilityOnDemand": False}


class Configure(Protocol):
    """The fixture `configure`."""

    def __call__(self, **settings: Any) -> None:
        """Start the hub's Kueue with other settings."""


@pytest.fixture(scope="module")
def configure(fleet: Fleet) -> Iterator[Configure]:
    """Return a function that starts the hub's Kueue with other settings; the last test puts the first ones back."""
    first: dict[str, Any] = {}

    def change(**settings: Any) -> None:
        before = fleet.reconfigure(fleet.hub, **(first | settings))
        for key, value in before.items():
            first.setdefault(key, value)

    yield change
    if first:
        fleet.reconfigure(fleet.hub, **first)


@pytest.fixture
def ordered(fleet: Fleet, configure: Configure, team: MakeTeam) -> Iterator[Team]:
    """Return a team whose jobs MultiKueue sends to worker2 first, which has little, then to worker1.

    Its queue is made after Kueue has started anew: Kueue answers before it knows the queues that there are, and a
    TrainJob that comes meanwhile is not MultiKueue's, for ever.
    """
    dispatcher = {"dispatcherName": INCREMENTAL, "incrementalDispatcherConfig": {"stepSize": 1}}
    configure(multiKueue=MULTIKUEUE | dispatcher, featureGates=GATES | {"MultiKueueManagerQuotaAutomation": True})
    api = Api(fleet.hub)
    meta = {"name": ORDERED}
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": ORDERED}
    check = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
    clusters = {"clusters": ["worker2", "worker1"]}
    api.apply(
        {"apiVersion": KUEUE, "kind": "MultiKueueConfig", "metadata": meta, "spec": clusters},
        {"apiVersion": KUEUE, "kind": "AdmissionCheck", "metadata": meta, "spec": check},
    )
    yield team(quotas={"worker2": {"cpu": "2"}}, checks=(ORDERED,))
    api.delete("admissionchecks", "", ORDERED)
    api.delete("multikueueconfigs", "", ORDERED)


@pytest.mark.scenario(52, "Incremental dispatcher: one worker at a time, in the order of the MultiKueueConfig")
@pytest.mark.scenario(58, "Quota automation: the hub's quota is the sum of the workers', and follows it")
def test_workers_are_asked_in_order(ordered: Team) -> None:
    us = ordered
    for name in ("first", "second"):
        us.submit(name, runtime=HELD)
        us.wait_running(name, on="worker2")
    us.submit("third", runtime=HELD)
    us.wait("third to be nominated", lambda: _is_nominated(us, "third", ["worker2"]))
    assert us.workload("third", on="worker1") is None
    assert us.placed("third") is None

    automated = {"spec": {"quotaManagement": "Automated"}}
    us.api().patch("multikueueconfigs", "", ORDERED, automated)
    us.wait("the sum of the quotas", lambda: _quota(us, "cpu") == "10")
    us.api("worker2").apply(objects.cluster_queue(us.namespace, {"cpu": "3"}))
    us.wait("the new sum", lambda: _quota(us, "cpu") == "11")
    us.wait_running("third", on="worker2")
    for name in ("first", "second", "third"):
        us.end(name, on="worker2")
    for name in ("first", "second", "third"):
        us.wait_done(name)


@pytest.mark.scenario(52, "External dispatcher: a job goes where it is told to, and nowhere before")
def test_a_dispatcher_of_ones_own(configure: Configure, team: MakeTeam) -> None:
    # Without the gate, only one who writes as Kueue itself does may nominate: server-side, with its field manager.
    gates = GATES | {"WorkloadRequestUseMergePatch": True}
    configure(multiKueue=MULTIKUEUE | {"dispatcherName": "test.trainplane.dev/dispatcher"}, featureGates=gates)
    us = team()
    us.submit("told", runtime=HELD)
    us.wait("quota", lambda: true_condition(us.workload("told"), "QuotaReserved") and us.check("told"))
    workload = us.workload("told") or {}
    assert not workload["status"].get("nominatedClusterNames")
    assert not any(us.workload("told", on=worker) for worker in us.workers)
    names = {"status": {"nominatedClusterNames": ["worker2"]}}
    us.api().patch("workloads", us.namespace, workload["metadata"]["name"], names, part="status")
    us.end("told", on=us.wait_running("told", on="worker2"))
    us.wait_done("told")


@pytest.mark.scenario(53, "Kueue without the TrainJob integration: no Workload, the job is the hub's own")
def test_the_integration_is_off(configure: Configure, team: MakeTeam) -> None:
    configure(integrations={"frameworks": ["batch/job", "jobset.x-k8s.io/jobset"]})
    us = team()
    job = us.submit("plain")
    assert job["spec"]["managedBy"] == "trainer.kubeflow.org/trainjob-controller"
    assert job["spec"]["suspend"] is False
    us.wait("its JobSet on the hub", lambda: us.api().get("jobsets", us.namespace, "plain"))
    assert us.workload("plain") is None


def _is_nominated(us: Team, name: str, workers: list[str]) -> bool:
    status = (us.workload(name) or {}).get("status") or {}
    return status.get("nominatedClusterNames") == workers or status.get("clusterName") in workers


def _quota(us: Team, resource: str) -> str:
    queue = us.api().get("clusterqueues", "", us.namespace) or {}
    (group,) = queue["spec"]["resourceGroups"]
    amounts = {one["name"]: one["nominalQuota"] for one in group["flavors"][0]["resources"]}
    return str(amounts[resource])
