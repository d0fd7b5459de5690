"""A survey under the caller's own rights: what is refused is told, the rest is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.client.reading.documents import condition, train_job
from tests.unit.client.reading.test_overview import DISPATCHED, a_node, a_pod, a_queue
from trainplane.client.backends.kubernetes import surveying
from trainplane.client.errors import ForbiddenError
from trainplane.client.types.overview import DeviceUse
from trainplane.kube.testing.faults import Refuse
from trainplane.resources import CLUSTER_QUEUES, HUB_TRAIN_JOBS, MULTIKUEUE_CLUSTERS, NODES, PODS, TRAIN_JOBS

if TYPE_CHECKING:
    from tests.unit.client.kubernetes.stage import Stage


def fill(stage: Stage) -> None:
    """Put a hub there, with a job on a worker and one of another namespace."""
    stage.job(condition("Failed"))
    other = train_job("b", spec=DISPATCHED, metadata={"namespace": "other"})
    stage.server.put(TRAIN_JOBS, other)
    view = {"metadata": {"name": "b", "namespace": "other"}, "status": {"cluster": "east", "placement": "Dispatched"}}
    stage.server.put(HUB_TRAIN_JOBS, view)
    stage.server.put(CLUSTER_QUEUES, a_queue())
    stage.server.put(
        MULTIKUEUE_CLUSTERS, {"metadata": {"name": "east"}, "status": {"conditions": [condition("Active")]}}
    )
    stage.server.put(NODES, a_node("a"))
    stage.server.put(
        PODS, {"metadata": {"name": "p", "namespace": "x"}, "status": {"phase": "Running"}} | a_pod("a", 2)
    )
    over = {"metadata": {"name": "q", "namespace": "x"}, "status": {"phase": "Succeeded"}} | a_pod("a", 4)
    stage.server.put(PODS, over)


async def test_a_hub_is_seen_whole(stage: Stage) -> None:
    fill(stage)
    seen = await stage.backend.survey()
    assert dict(seen.jobs) == {"Failed": 1, "Pending": 1}
    assert seen.namespace is None
    assert [(one.name, one.phase) for one in seen.concerns] == [("a", "Failed"), ("b", "Pending")]
    assert [(queue.name, queue.pending) for queue in seen.queues] == [("team", 3)]
    assert [(worker.name, worker.is_connected, worker.jobs) for worker in seen.workers] == [("east", True, 1)]
    assert seen.devices == (DeviceUse("nvidia.com/gpu", 8, 2),)
    assert seen.unread == {}


async def test_one_namespace_may_be_asked_for(stage: Stage) -> None:
    fill(stage)
    seen = await stage.backend.survey(whole=False)
    assert (dict(seen.jobs), seen.namespace) == ({"Failed": 1}, "team")


async def test_what_is_refused_is_told_and_the_rest_is_there(stage: Stage) -> None:
    fill(stage)
    for plural in ("clusterqueues", "nodes", "multikueueclusters"):
        stage.server.add_fault(Refuse(code=403, reason="Forbidden", verb="list", plural=plural, times=None))
    stage.server.add_fault(Refuse(code=403, reason="Forbidden", verb="list", plural="trainjobs", times=1))
    seen = await stage.backend.survey()
    assert (dict(seen.jobs), seen.namespace) == ({"Failed": 1}, "team")
    assert seen.unread == {
        "jobs": "you may not list TrainJobs of all namespaces: only team's",
        "queues": "you may not list clusterqueues",
        "workers": "you may not list multikueueclusters",
        "devices": "you may not list nodes",
    }


async def test_who_may_not_even_list_his_own_jobs_is_told_so(stage: Stage) -> None:
    stage.server.add_fault(Refuse(code=401, reason="Unauthorized", verb="list", times=None))
    with pytest.raises(ForbiddenError, match="log in again"):
        await stage.backend.survey()


async def test_very_long_lists_are_cut_and_that_is_told(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveying, "MOST", 3)
    for number in range(5):
        stage.job(name=f"job-{number}")
    seen = await stage.backend.survey()
    assert sum(seen.jobs.values()) == 3
    assert seen.unread["jobs"] == "there are more than 3: only the first are counted"
