"""On the hub: what each worker would say, and what holds a job up that workers have room for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.fleet import CHECK
from tests.fleet import objects
from tests.fleet.queued.asking import GPU, suggestion

if TYPE_CHECKING:
    from tests.fleet.queued.conftest import MakeDesk


def test_workers_say_whether_they_would_take_a_job(desk: MakeDesk) -> None:
    ours = desk("hub", quotas={"hub": {GPU: "4"}, "worker1": {GPU: "2"}, "worker2": {GPU: "6"}})
    ours.submit("six", nodes=3, gpus=2, cpu="10m")
    told = ours.wait_answer("six", "ExceedsQuota")
    assert [(each.cluster, each.fits) for each in told.clusters] == [("worker1", False), ("worker2", True)]
    assert told.clusters[0].answer.causes[0].code == "ExceedsQuota"
    assert suggestion(told, "OtherCluster").cluster == "worker2"
    assert suggestion(told, "FewerNodes").num_nodes == 2, "the hub has quota for two, and worker2 room"

    queue = objects.cluster_queue(ours.team.namespace, {GPU: "32"}, checks=(CHECK,))
    ours.team.api().apply(queue)
    ours.wait_started("six")
    assert ours.team.wait_running("six", on="worker2")
    assert "it is on worker2" in ours.ask("six")["six"].summary

    ours.wait_counted({ours.team.namespace: 6}, on="worker2")
    ours.submit("four", nodes=4, gpus=1, cpu="10m")
    ours.team.wait("workers to be asked", lambda: "asked to take it" in ours.ask("four")["four"].summary)
    told = ours.wait_answer("four", "AdmissionCheck")
    assert all(worker in told.summary for worker in ours.team.workers)
    assert [(each.cluster, each.fits) for each in told.clusters] == [("worker1", False), ("worker2", False)]
    assert [each.answer.causes[0].code for each in told.clusters] == ["ExceedsQuota", "QuotaInUse"]
    fewer = suggestion(told, "FewerNodes")
    assert (fewer.num_nodes, fewer.now) == (2, True)
    ours.submit("two", nodes=2, gpus=1, cpu="10m")
    assert ours.team.wait_running("two") == "worker1"


def test_a_worker_that_cannot_take_it_says_why(desk: MakeDesk) -> None:
    ours = desk("hub", absent=("worker1",))
    worker = ours.team.api("worker2")
    worker.delete("localqueues", ours.team.namespace, objects.QUEUE)
    ours.submit("lost")
    told = ours.wait_answer("lost", "AdmissionCheck")
    assert [each.answer.causes[0].code for each in told.clusters] == ["NamespaceMissing", "LocalQueueMissing"]
    worker.apply(objects.local_queue(ours.team.namespace))
    assert ours.team.wait_running("lost") == "worker2"


def test_a_job_made_before_its_queue_sent_jobs_to_workers_is_told_apart(desk: MakeDesk) -> None:
    ours = desk("hub")
    queue = ours.queue("turned", "8", stopPolicy="Hold")
    ours.submit("early", queue="turned")
    ours.wait_answer("early", "ClusterQueueStopped", "NoNodeFits")
    sends = {"admissionChecksStrategy": {"admissionChecks": [{"name": CHECK}]}, "stopPolicy": "None"}
    ours.team.api().apply({**queue, "spec": {**queue["spec"], **sends}})
    told = ours.wait_answer("early", "ManagedBy", "Deactivated")
    assert "managedBy" in told.causes[1].what, "Kueue's check says so too"
