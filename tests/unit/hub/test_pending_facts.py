"""What is read for an answer, and with how many requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.hub.pending_world import (
    GPU,
    NOW,
    check,
    cluster_queue,
    flavor,
    holder,
    job,
    local_queue,
    node,
    workload,
)
from trainplane import resources
from trainplane.api import names
from trainplane.hub.errors import NoSuchJobError, NoSuchWorkerError, UnreadableError
from trainplane.hub.pending.explain import answer
from trainplane.hub.pending.facts import COHORT_LISTS, HOLDERS_ASKED, Facts, gather
from trainplane.kube.testing.clock import FakeClock
from trainplane.kube.testing.faults import Refuse
from trainplane.kube.testing.server import FakeServer
from trainplane.kube.transport import TransportSettings

if TYPE_CHECKING:
    from trainplane.kube.client import Client
    from trainplane.kube.resource import Resource

Tree = dict[str, Any]

CHECKED: Tree = {"admissionChecksStrategy": {"admissionChecks": [{"name": "mk"}]}}


class FakeWorkers:
    """Workers by name, some of which there are none of."""

    def __init__(self, **clients: Client) -> None:
        self.clients = clients

    async def client(self, name: str) -> Client:
        if name not in self.clients:
            raise NoSuchWorkerError(name)
        return self.clients[name]


def fill(server: FakeServer, *, own: Tree | None, queue: Tree | None = None) -> Tree:
    """Put a job, its Workload and its queues on a server; return the job."""
    stored = server.put(resources.TRAIN_JOBS, job())
    if own is not None:
        own["metadata"]["labels"] = {names.LABEL_JOB_UID: stored["metadata"]["uid"]}
        server.put(resources.WORKLOADS, own)
    put(server, resources.CLUSTER_QUEUES, queue or cluster_queue(used="6"))
    put(server, resources.LOCAL_QUEUES, local_queue())
    put(server, resources.RESOURCE_FLAVORS, flavor())
    put(server, resources.NODES, node())
    put(server, resources.NAMESPACES, {"metadata": {"name": "team"}}, {"metadata": {"name": "other"}})
    put(server, resources.CLUSTER_TRAINING_RUNTIMES, {"metadata": {"name": "torch"}})
    return stored


def put(server: FakeServer, resource: Resource, *trees: Tree) -> None:
    for tree in trees:
        server.put(resource, tree)


async def test_the_common_case_is_read_with_twelve_requests() -> None:
    async with FakeServer() as server, server.client() as client:
        fill(server, own=workload())
        put(server, resources.WORKLOADS, workload("other", namespace="other"))
        facts = await gather(client, "team", "job")
        assert len(server.requests) == 12
        assert facts.workload is not None
        assert facts.workload["metadata"]["name"] == "trainjob-job-abcde"
        assert facts.namespace is not None
        assert facts.namespace["metadata"]["name"] == "team"
        assert facts.runtime_exists
        assert len(facts.nodes or ()) == 1
        assert facts.unread == ()
        selected = [asked.query.get("fieldSelector") for asked in server.asked("list", "workloads")]
        assert sorted(filter(None, selected)) == ["status.admission.clusterQueue=", "status.admission.clusterQueue=cq"]


async def test_a_job_that_is_not_there() -> None:
    async with FakeServer() as server, server.client() as client:
        with pytest.raises(NoSuchJobError, match="no TrainJob 'job' in namespace 'team'"):
            await gather(client, "team", "job")


async def test_without_a_workload_its_events_are_read() -> None:
    async with FakeServer() as server, server.client() as client:
        stored = fill(server, own=None)
        server.remove(resources.CLUSTER_TRAINING_RUNTIMES, "torch")
        about = {"uid": stored["metadata"]["uid"]}
        event = {
            "metadata": {"name": "e", "namespace": "team"},
            "involvedObject": about,
            "message": "no",
            "type": "Warning",
        }
        put(server, resources.EVENTS, event)
        facts = await gather(client, "team", "job")
        assert facts.workload is None
        assert facts.runtime_exists is False
        assert [each["message"] for each in facts.events] == ["no"]


async def test_the_runtime_of_a_namespace_is_looked_for_there() -> None:
    async with FakeServer() as server, server.client() as client:
        stored = fill(server, own=workload())
        stored["spec"]["runtimeRef"] = {"kind": "TrainingRuntime", "name": "torch"}
        put(server, resources.TRAIN_JOBS, stored)
        assert (await gather(client, "team", "job")).runtime_exists is False
        put(server, resources.TRAINING_RUNTIMES, {"metadata": {"name": "torch", "namespace": "team"}})
        assert (await gather(client, "team", "job")).runtime_exists is True


async def test_holders_are_read_of_the_queues_that_use_the_cohort_and_some_are_asked_when_they_end() -> None:
    async with FakeServer() as server, server.client() as client:
        fill(server, own=workload(), queue=cluster_queue(cohortName="c", used="8"))
        for number in range(9):
            used = "8" if number else "0"
            put(server, resources.CLUSTER_QUEUES, cluster_queue(f"q{number}", cohortName="c", used=used))
        for number in range(8):
            one = holder(f"h{number}", "1")
            put(server, resources.WORKLOADS, one)
            put(server, resources.TRAIN_JOBS, job(f"h{number}"))
        over = holder("over", "1")
        over["status"]["conditions"].append({"type": "Finished", "status": "True"})
        put(server, resources.WORKLOADS, over)
        facts = await gather(client, "team", "job")
        assert (
            len([a for a in server.asked("list", "workloads") if "clusterQueue=q" in str(a.query)]) == COHORT_LISTS - 1
        )
        assert "status.admission.clusterQueue=q0" not in str(server.requests), "it uses nothing"
        assert len(facts.holding_jobs) == HOLDERS_ASKED
        assert "trainjob-over-abcde" not in {one["metadata"]["name"] for one in facts.holding}
        assert len(server.requests) <= 22


async def test_a_job_with_quota_asks_for_no_holders() -> None:
    async with FakeServer() as server, server.client() as client:
        own = workload(conditions={"QuotaReserved": ("True", "QuotaReserved", "")})
        fill(server, own=own)
        assert (await gather(client, "team", "job")).holding == ()
        assert len(server.requests) == 11


async def test_what_may_not_be_read_is_left_out_and_named() -> None:
    async with FakeServer() as server, server.client() as client:
        fill(server, own=workload())
        for plural in ("nodes", "cohorts", "namespaces"):
            server.add_fault(Refuse(code=403, verb="list", plural=plural, times=9))
        facts = await gather(client, "team", "job")
        assert facts.unread == ("cohorts", "nodes", "namespaces")
        assert facts.nodes is None
        told = await answer(client, "team", "job")
        assert "Could not be read" in told.to_text()


async def test_what_may_not_be_read_is_not_said_to_be_missing() -> None:
    async with FakeServer() as server, server.client() as client:
        fill(server, own=workload())
        server.add_fault(Refuse(code=403, verb="get", plural="clustertrainingruntimes"))
        server.add_fault(Refuse(code=403, verb="list", plural="localqueues"))
        told = await answer(client, "team", "job")
        assert told.causes == ()
        assert told.unread == ("localqueues",)
        assert told.summary == "Nothing that we can see stands in its way."


async def test_workers_are_read_as_the_check_names_them() -> None:
    async with FakeServer() as server, server.client() as hub, FakeServer() as other, other.client() as worker:
        own = workload(conditions={"QuotaReserved": ("True", "QuotaReserved", "")})
        fill(server, own=own, queue=cluster_queue(**CHECKED))
        parameters = {"kind": "MultiKueueConfig", "name": "both"}
        put(
            server,
            resources.ADMISSION_CHECKS,
            check("mk", controller="kueue.x-k8s.io/multikueue", parameters=parameters),
        )
        put(server, resources.MULTIKUEUE_CONFIGS, {"metadata": {"name": "both"}, "spec": {"clusters": ["near", "far"]}})
        put(other, resources.WORKLOADS, workload())
        put(other, resources.CLUSTER_QUEUES, cluster_queue(used="8"))
        put(other, resources.LOCAL_QUEUES, local_queue())
        facts = await gather(hub, "team", "job", FakeWorkers(near=worker))  # type: ignore[arg-type] # the one method
        near, far = facts.workers["near"], facts.workers["far"]
        assert isinstance(near, Facts)
        assert near.workload is not None
        assert near.cluster == "near"
        assert near.model == facts.workload
        assert far == "the hub has no MultiKueueCluster 'far': see kubectl get multikueueclusters"
        assert len(other.requests) <= 11
        told = await answer(hub, "team", "job", FakeWorkers(near=worker))  # type: ignore[arg-type] # the one method
        assert [(each.cluster, each.fits) for each in told.clusters] == [("near", False), ("far", None)]


async def test_a_worker_that_does_not_answer_is_told_and_the_rest_is_answered() -> None:
    async with FakeServer() as other:
        gone = other.client(settings=TransportSettings(attempts=1))
    async with FakeServer() as server, server.client() as hub, gone:
        own = workload(conditions={"QuotaReserved": ("True", "QuotaReserved", "")})
        fill(server, own=own, queue=cluster_queue(**CHECKED))
        parameters = {"kind": "MultiKueueConfig", "name": "one"}
        put(
            server,
            resources.ADMISSION_CHECKS,
            check("mk", controller="kueue.x-k8s.io/multikueue", parameters=parameters),
        )
        put(server, resources.MULTIKUEUE_CONFIGS, {"metadata": {"name": "one"}, "spec": {"clusters": ["gone"]}})
        facts = await gather(hub, "team", "job", FakeWorkers(gone=gone))  # type: ignore[arg-type] # the one method
        assert "worker gone cannot be reached" in str(facts.workers["gone"])


async def test_time_is_the_clock_s() -> None:
    clock = FakeClock()
    async with FakeServer() as server, server.client() as client:
        fill(server, own=workload())
        assert (await gather(client, "team", "job", clock=clock)).now == clock.now() != NOW


async def test_the_answer_names_quota_and_holder() -> None:
    async with FakeServer() as server, server.client() as client:
        fill(server, own=workload())
        put(server, resources.WORKLOADS, holder("mine", "6"))
        told = await answer(client, "team", "job")
        assert told.causes[0].code == "QuotaInUse"
        assert [(each.job, each.amount, each.resource) for each in told.holders] == [("TrainJob/mine", "6", GPU)]
        assert told.suggestions[0].num_nodes == 1


async def test_objects_that_are_none_of_their_kind_are_set_aside_and_named() -> None:
    async with FakeServer() as server, server.client() as client:
        fill(server, own=workload())
        put(server, resources.NODES, {"metadata": {"name": "odd"}, "status": {"allocatable": {"cpu": ["x"]}}})
        facts = await gather(client, "team", "job")
        assert [found["metadata"]["name"] for found in facts.nodes or ()] == ["n"]
        assert [text.partition(":")[0] for text in facts.unread] == ["a Node"]


async def test_a_worker_that_sends_nonsense_is_told_and_the_rest_is_answered() -> None:
    async with FakeServer() as hub, FakeServer() as worker, hub.client() as client, worker.client() as there:
        fill(hub, own=workload(), queue=cluster_queue(**CHECKED))
        put(
            hub,
            resources.ADMISSION_CHECKS,
            check("mk", controller="kueue.x-k8s.io/multikueue", parameters={"name": "m"}),
        )
        put(hub, resources.MULTIKUEUE_CONFIGS, {"metadata": {"name": "m"}, "spec": {"clusters": ["worker1"]}})
        put(worker, resources.CLUSTER_QUEUES, {"metadata": {"name": "cq"}, "spec": {"resourceGroups": [7]}})
        found = await answer(client, "team", "job", FakeWorkers(worker1=there))  # type: ignore[arg-type]
        assert [one.cluster for one in found.clusters] == ["worker1"]
        assert "ClusterQueue" in found.clusters[0].answer.unread[0]


async def test_a_trainjob_that_is_none_is_an_error_of_ours_with_the_field() -> None:
    async with FakeServer() as server, server.client() as client:
        server.put(resources.TRAIN_JOBS, {"metadata": {"name": "job", "namespace": "team"}, "spec": {"suspend": "yes"}})
        with pytest.raises(UnreadableError, match=r"spec\.suspend"):
            await gather(client, "team", "job")
