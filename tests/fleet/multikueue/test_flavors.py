"""On the worker, too, pods run where the worker's queue was charged for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lab.fleet import CHECK
from tests.fleet import objects
from tests.fleet.objects import HELD, KUEUE_MANAGER

if TYPE_CHECKING:
    from tests.fleet.team import MakeTeam

HOST = "kubernetes.io/hostname"
MINE = "example.com/team"


def test_a_patch_of_the_hubs_user_does_not_lead_away_from_the_workers_flavor(team: MakeTeam) -> None:
    """The hub's Workload, made when the job came, is the worker's: a node selector that came later is in no one's."""
    us = team(quotas={"hub": {"cpu": "0"}, "worker2": {"cpu": "0"}})
    flavor = objects.flavor(us.namespace, nodeLabels={HOST: "kwok-0"})
    us.api("worker1").apply(flavor, objects.cluster_queue(us.namespace, flavor=us.namespace))
    stored = us.submit("job", runtime=HELD)
    us.wait("the hub's Workload", partial(us.workload, "job"))
    change = {"name": "node", "template": {"spec": {"template": {"spec": {"nodeSelector": {HOST: "kwok-1"}}}}}}
    mine = {"manager": MINE, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [change]}}}}
    patches = {"spec": {"runtimePatches": [*stored["spec"]["runtimePatches"], mine]}}
    us.api().patch("trainjobs", us.namespace, "job", patches)

    us.api().apply(objects.cluster_queue(us.namespace, checks=(CHECK,)))
    us.wait_running("job", on="worker1")
    copy = us.job("job", on="worker1") or {}
    assert {one["manager"] for one in copy["spec"]["runtimePatches"]} == {MINE, KUEUE_MANAGER}
    assert {pod["spec"]["nodeName"] for pod in us.pods("job", on="worker1")} == {"kwok-0"}
