"""Topology-aware placement: Kueue chooses hosts, rank by rank, for the pods that our runtimes describe."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fleet import objects
from tests.fleet.one_cluster.runtimes import in_namespace, runtime, step
from tests.fleet.one_cluster.stage import BLOCK, HOST, POOL, SLOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster
    from tests.fleet.objects import Tree
    from tests.fleet.one_cluster.team import Team

_PREFERRED = {"kueue.x-k8s.io/podset-preferred-topology": BLOCK}
_REQUIRED = {"kueue.x-k8s.io/podset-required-topology": BLOCK}
_SLICES = {"kueue.x-k8s.io/podset-slice-required-topology": BLOCK, "kueue.x-k8s.io/podset-slice-size": "3"}
_SLOT: Tree = {"requests": {SLOT: "1"}, "limits": {SLOT: "1"}}
"""Both: Kueue 0.19 ends with a panic when it starts and finds a placed Workload whose pods have limits alone."""
_RANK_BY_RANK = {"0/0": 0, "0/1": 1, "1/0": 2, "1/1": 3, "2/0": 4, "2/1": 5}
_A_JOB_A_BLOCK = {"0/0": 0, "0/1": 1, "0/2": 2, "1/0": 4, "1/1": 5, "1/2": 6}


@pytest.fixture(scope="module", autouse=True)
def rack(kueue_cluster: Cluster) -> Iterator[str]:
    """Return a ClusterQueue on the eight hosts of the rack, for every team.

    All of them share it: Kueue tries a job again when something of its own queue ends, not when another queue with the
    same hosts gets free.
    """
    levels = {"levels": [{"nodeLabel": BLOCK}, {"nodeLabel": HOST}]}
    queue = objects.cluster_queue("rack", {SLOT: "8"}, flavor="rack", namespaceSelector={})
    topology = {"apiVersion": objects.KUEUE, "kind": "Topology", "metadata": {"name": "rack"}, "spec": levels}
    flavor = objects.flavor("rack", nodeLabels={POOL: "rack"}, topologyName="rack")
    kueue_cluster.apply(topology, flavor, queue)
    yield "rack"
    kueue_cluster.kubectl("delete", "clusterqueue", "rack", "--wait=false")
    kueue_cluster.kubectl("delete", "resourceflavor", "rack", "--wait=false")
    kueue_cluster.kubectl("delete", "topology", "rack", "--wait=false")


@pytest.fixture
def team(team: Team, rack: str) -> Team:
    """Return a team with a queue that leads to the rack."""
    team.create(objects.local_queue(team.namespace, cluster_queue=rack))
    team.wait("the queue to be active", lambda: team.holds("localqueues", objects.QUEUE, "Active"))
    return team


def _hosts(team: Team) -> dict[str, int]:
    """Return for each pod, by job and completion index, the number of its host."""
    found = {}
    for pod in team.pods("job"):
        labels = pod["metadata"]["labels"]
        place = f"{labels['jobset.sigs.k8s.io/job-index']}/{labels['batch.kubernetes.io/job-completion-index']}"
        found[place] = int(pod["spec"]["nodeName"].removeprefix("rack-"))
    return found


@pytest.mark.parametrize(
    ("annotations", "replicas", "parallelism", "expected"),
    [
        pytest.param(
            _PREFERRED,
            3,
            2,
            _RANK_BY_RANK,
            marks=pytest.mark.scenario(40, "ranks in order of hosts; replicas of a runtime without a trainer count"),
        ),
        pytest.param(
            _PREFERRED | _SLICES, 2, 3, _A_JOB_A_BLOCK, marks=pytest.mark.scenario(41, "two levels: slices in blocks")
        ),
        pytest.param(_SLICES, 2, 3, _A_JOB_A_BLOCK, marks=pytest.mark.scenario(42, "slices alone")),
    ],
)
def test_pods_are_placed_rank_by_rank(
    team: Team, annotations: dict[str, str], replicas: int, parallelism: int, expected: dict[str, int]
) -> None:
    many = step(
        ancestor=None,
        replicas=replicas,
        parallelism=parallelism,
        completions=parallelism,
        annotations=annotations,
        **_SLOT,
    )
    team.create(runtime("rack", team.namespace, many, policy={}))
    job = objects.train_job("job", team.namespace, **in_namespace("rack"))
    del job["spec"]["trainer"]
    team.create_seen(job)
    team.wait_running("job", pods=replicas * parallelism)
    assert _hosts(team) == expected


@pytest.mark.scenario(36, "required and preferred topologies, one for each pod set")
def test_each_step_gets_the_topology_that_it_asks_for(team: Team) -> None:
    alone = step("alone", ancestor=None, parallelism=1, completions=1, annotations=_PREFERRED, **_SLOT)
    team.create(runtime("rack", team.namespace, alone, step(annotations=_REQUIRED, **_SLOT)))
    team.submit("job", nodes=4, **in_namespace("rack"))
    team.wait_running("job", pods=5)
    blocks: dict[str, set[int]] = {"alone": set(), "node": set()}
    for pod in team.pods("job"):
        host = int(pod["spec"]["nodeName"].removeprefix("rack-"))
        blocks[pod["metadata"]["labels"]["kueue.x-k8s.io/podset"]].add(host // 4)
    assert len(blocks["node"]) == 1, "four nodes in one block"
    assert blocks["alone"].isdisjoint(blocks["node"]), "the block of the four is full"
    requests = {one["name"]: one["topologyRequest"] for one in (team.workload("job") or {})["spec"]["podSets"]}
    assert requests["node"]["required"] == requests["alone"]["preferred"] == BLOCK
