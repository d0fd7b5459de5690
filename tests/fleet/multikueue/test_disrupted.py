"""A TrainJob whose pods talk is preempted, and loses pods, on a worker; it trains again each time and completes."""

from __future__ import annotations

import uuid
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from lab import node, trainplane
from lab.paths import REPOSITORY
from lab.webhooks import documents
from tests.disruptions import actions
from tests.disruptions.job import Job
from tests.disruptions.trainer import train_job
from tests.fleet import objects
from tests.fleet.api import Api
from tests.fleet.team import make_team, remove_team
from tests.size import sized

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster
    from lab.fleet import Fleet
    from tests.fleet.team import Team
    from tests.suite import SuiteReport

RUNTIME = "disrupted"
"""The shipped runtime torch-distributed, and the flavor of the node that runs pods."""
PREEMPTION = {"withinClusterQueue": "LowerPriority"}
TIMES = sized(1, full=5)


@pytest.fixture
def us(fleet: Fleet, real_worker: Cluster) -> Iterator[Team]:
    """Return a team with quota for two pods on the first worker, and more on the hub."""
    (runtime,) = documents(REPOSITORY / "runtimes/torch-distributed.yaml")
    runtime["metadata"]["name"] = RUNTIME
    for cluster in fleet.clusters:
        labels = {"nodeLabels": {"kubernetes.io/hostname": node.NAME}, "tolerations": [objects.REAL]}
        Api(cluster).apply(runtime, objects.flavor(RUNTIME, **(labels if cluster is real_worker else {})))
    quotas = {"worker1": {"cpu": "100m"}, "worker2": {"cpu": "0"}}
    team = make_team(fleet, f"disrupted-{uuid.uuid4().hex[:8]}", quotas=quotas, flavor=RUNTIME, preemption=PREEMPTION)
    for cluster in fleet.clusters:
        Api(cluster).apply(*(objects.priority_class(f"disrupted-{value}", value) for value in (1, 1000)))
    yield team
    remove_team(team)
    for cluster in fleet.clusters:
        Api(cluster).delete("resourceflavors", "", RUNTIME)
        Api(cluster).delete("clustertrainingruntimes", "", RUNTIME)


def make_job(us: Team, name: str, priority: int) -> Job:
    """Return a TrainJob of two pods for the hub, whose pods run on the first worker."""
    tree = train_job(name, us.namespace, RUNTIME, cpu="50m")
    labels = {objects.QUEUE_LABEL: objects.QUEUE, objects.PRIORITY_LABEL: f"disrupted-{priority}"}
    tree["metadata"]["labels"] = labels
    return Job(us.cluster("hub"), tree, 2, trainplane.ENGINE, worker=us.cluster("worker1"))


@pytest.mark.timeout(1800)
def test_train_job_preempted_and_disrupted_on_a_worker_continues_and_completes(us: Team, report: SuiteReport) -> None:
    def preempt(job: Job) -> None:
        with closing(make_job(us, f"urgent-{job.cycles}", 1000)) as urgent:
            actions.preempt(job, urgent)

    done: Any = (preempt, actions.delete_last, preempt, actions.abort, actions.evict_first) * TIMES
    victim = make_job(us, "victim", 1)
    us.create_seen(make_job(us, "first", 1).tree)  # waits until Kueue knows the runtime
    us.delete("first")
    with closing(victim):
        actions.run(victim, done)
    assert victim.end.startswith("Complete: "), victim.end
    report.figure("disrupted_on_worker", victim.cycles)
