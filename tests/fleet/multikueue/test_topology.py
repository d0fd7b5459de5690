from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fleet import objects
from tests.fleet.api import Api
from tests.fleet.objects import KUEUE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.fleet import Fleet
    from tests.fleet.api import Tree
    from tests.fleet.team import MakeTeam, Team

HOSTS = "hosts"
HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "kueue.x-k8s.io/podset-required-topology"


@pytest.fixture
def hosts(fleet: Fleet) -> Iterator[str]:
    """Return a flavor with a topology of hosts, on hub and workers."""
    topology = {"apiVersion": KUEUE, "kind": "Topology", "metadata": {"name": HOSTS}}
    for cluster in fleet.clusters:
        Api(cluster).apply(
            topology | {"spec": {"levels": [{"nodeLabel": HOSTNAME}]}},
            objects.flavor(HOSTS, nodeLabels={"type": "kwok"}, topologyName=HOSTS),
        )
    yield HOSTS
    for cluster in fleet.clusters:
        Api(cluster).delete("resourceflavors", "", HOSTS)
        Api(cluster).delete("topologies", "", HOSTS)


@pytest.mark.scenario(55, "A required topology: the worker assigns it, and the hub waits until it has")
def test_the_worker_assigns_the_topology(team: MakeTeam, hosts: str) -> None:
    us = team(flavor=hosts, quotas={name: {"cpu": "64"} for name in ("hub", "worker1", "worker2")})
    tight = objects.namespaced(objects.runtime("tight", lasts="24h"), us.namespace)
    pods = tight["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pods["metadata"]["annotations"][REQUIRED] = HOSTNAME
    for cluster in ("hub", *us.workers):
        us.api(cluster).apply(tight)
    us.submit_seen("tight", runtime="tight", kind="TrainingRuntime", nodes=3, cpu="8")
    where = us.wait_running("tight")
    us.wait("three pods", lambda: len(us.pods("tight", on=where)) == 3 and us.is_running("tight", on=where))
    assert len({pod["spec"]["nodeName"] for pod in us.pods("tight", on=where)}) == 1

    here, there = (_pod_set(us, cluster) for cluster in ("hub", where))
    assert there["topologyAssignment"]["levels"] == [HOSTNAME]
    assert here["delayedTopologyRequest"] == "Ready"
    assert "topologyAssignment" not in here, "hosts are the worker's own business"
    us.end("tight", on=where)
    us.wait_done("tight")
    # Kueue must not restart, for a later test, while a Workload has a topology whose flavor is about to go.
    us.delete("tight")
    us.wait("the Workload to be gone", lambda: us.workload("tight") is None)
    us.wait_gone("tight", on=where)


def _pod_set(us: Team, cluster: str) -> Tree:
    """Return what a Workload's only pod set was assigned."""
    pod_set: Tree
    (pod_set,) = (us.workload("tight", on=cluster) or {})["status"]["admission"]["podSetAssignments"]
    return pod_set
