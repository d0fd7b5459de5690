from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.hub.check_objects import FakeCluster, content, multikueue, runtime, train_job
from tests.unit.hub.fakeworker import serving
from trainplane.hub.check.facts import PERMISSIONS, Permission, Unseen
from trainplane.hub.check.gather import gather, job_named
from trainplane.hub.check.judge import check, judge
from trainplane.hub.errors import NoSuchJobError, NotAHubError
from trainplane.hub.workers import Workers
from trainplane.kube.client import Client
from trainplane.kube.errors import ForbiddenError
from trainplane.kube.resource import Key
from trainplane.kube.transport import TransportSettings
from trainplane.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    MULTIKUEUE_CLUSTERS,
    SECRETS,
    TRAIN_JOBS,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainplane.kube.config import Config
    from trainplane.kube.testing.faults import Fault
    from trainplane.kube.testing.verbs import Asking


def connect(config: Config) -> Client:
    return Client.connect(config, settings=TransportSettings(attempts=1))


@dataclass
class Fleet:
    hub: FakeCluster
    worker: FakeCluster
    client: Client
    workers: Workers


@pytest.fixture
async def fleet() -> AsyncIterator[Fleet]:
    """A hub with one worker, all well."""
    async with FakeCluster() as hub, FakeCluster(tokens={"t"}, tls=serving()) as worker, hub.client() as client:
        hub.fill({**content(checks=("mk",)), **multikueue("worker1")})
        hub.put_worker("worker1", worker)
        worker.fill(content())
        async with Workers(client, connect=connect) as workers:
            yield Fleet(hub, worker, client, workers)


async def test_a_fleet_that_is_well_is_found_well(fleet: Fleet) -> None:
    report = await check(fleet.client, fleet.workers, trainjob=train_job())
    assert report.level is None
    assert report.worker("worker1").check("connection").summary == f"{fleet.worker.url}, Kubernetes v1.99.0-fake"
    assert report.worker("worker1").check("runtimes").summary == "2 of 2 equal the hub's"


async def test_nothing_is_written_and_no_secret_of_a_worker_is_opened(fleet: Fleet) -> None:
    job = train_job()
    job["spec"]["trainer"]["env"] = [{"name": "T", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "k"}}}]
    fleet.worker.put(SECRETS, {"metadata": {"name": "hf", "namespace": "research"}})
    report = await check(fleet.client, fleet.workers, trainjob=job)
    assert report.ready
    for server in (fleet.hub, fleet.worker):
        writes = [one for one in server.requests if one.method != "GET"]
        assert {one.path.rpartition("/")[2] for one in writes} <= {"selfsubjectaccessreviews"}
    (opened,) = [one for one in fleet.worker.requests if "/secrets" in one.path]
    assert "PartialObjectMetadata" in opened.headers["Accept"]


async def test_what_a_worker_lacks_for_the_job_is_found(fleet: Fleet) -> None:
    job = train_job()
    job["spec"]["trainer"]["env"] = [{"name": "T", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "k"}}}]
    report = await check(fleet.client, fleet.workers, trainjob=job)
    (finding,) = report.worker("worker1").check("trainjob").findings
    assert finding.problem.startswith("Secret hf, named by container node of the pods of node, does not exist here")
    fleet.worker.hidden = {"secrets"}
    report = await check(fleet.client, fleet.workers, trainjob=job)
    assert report.worker("worker1").check("trainjob").level == "unseen"


async def test_permissions_are_asked_one_by_one(fleet: Fleet) -> None:
    fleet.worker.denied = {("trainjobs", "create"), ("workloads/status", "patch")}
    (worker,) = (await gather(fleet.client, fleet.workers)).workers
    assert not isinstance(worker.permissions, Unseen)
    assert set(worker.permissions) == set(PERMISSIONS)
    assert [one for one, allowed in worker.permissions.items() if not allowed] == [
        Permission("kueue.x-k8s.io", "workloads/status", "patch"),
        Permission("trainer.kubeflow.org", "trainjobs", "create"),
    ]


async def test_what_the_hub_view_needs_is_asked_where_it_is_installed(fleet: Fleet) -> None:
    fleet.worker.denied = {("jobs", "get"), ("pods", "watch"), ("pods", "list")}
    report = await check(fleet.client, fleet.workers)
    assert report.worker("worker1").check("credentials").findings == ()
    fleet.hub.apis["hub.trainplane.dev/v1alpha1"] = ("trainjobs",)
    report = await check(fleet.client, fleet.workers)
    findings = report.worker("worker1").check("credentials").findings
    assert [(finding.level, finding.problem.partition(":")[0]) for finding in findings] == [
        ("warns", "MultiKueue's credentials may not list, watch pods"),
        ("warns", "MultiKueue's credentials may not get jobs.batch"),
    ]
    assert "manifests/hub/worker-role.yaml" in findings[0].remedy


async def test_what_may_not_be_read_is_unseen_and_the_rest_is_seen(fleet: Fleet) -> None:
    fleet.worker.hidden = {"clustertrainingruntimes", "namespaces"}
    facts = await gather(fleet.client, fleet.workers)
    cluster = facts.workers[0].cluster
    assert cluster is not None
    found = cluster.of(CLUSTER_TRAINING_RUNTIMES)
    assert isinstance(found, Unseen)
    assert found.why == "forbidden"
    report = judge(facts)
    assert {one.area for one in report.worker("worker1").checks if one.findings} == {"runtimes"}


async def test_own_eyes_see_what_multikueue_may_not(fleet: Fleet) -> None:
    fleet.worker.hidden = {"clustertrainingruntimes"}
    async with FakeCluster() as other, other.client() as admin_client:
        other.fill(content())
        report = await check(fleet.client, fleet.workers, admin_clients={"worker1": admin_client})
    assert report.level is None
    assert not [one for one in fleet.worker.requests if "runtimes" in one.path and "openapi" not in one.path]
    assert [one for one in fleet.worker.requests if "selfsubjectaccessreviews" in one.path]


async def test_a_worker_that_is_gone_is_trouble_and_the_others_are_judged(fleet: Fleet) -> None:
    async with FakeCluster(tokens={"t"}, tls=serving()) as second:
        second.fill(content())
        for cluster in multikueue("worker1", "worker2")[MULTIKUEUE_CLUSTERS]:
            fleet.hub.put(MULTIKUEUE_CLUSTERS, cluster)
        fleet.hub.put_worker("worker2", second)
        await fleet.worker.stop()
        report = await check(fleet.client, fleet.workers)
    assert report.worker("worker2").level is None
    (finding,) = report.worker("worker1").findings
    assert finding.problem.startswith(f"{fleet.worker.url} does not answer: ")


async def test_a_worker_that_refuses_the_token_says_so(fleet: Fleet) -> None:
    fleet.hub.put_worker("worker1", fleet.worker, token="old")
    (finding,) = (await check(fleet.client, fleet.workers)).worker("worker1").findings
    assert "does not accept the credentials of Secret kueue-system/worker1 (401)" in finding.problem


async def test_a_missing_secret_is_the_workers_trouble(fleet: Fleet) -> None:
    fleet.hub.remove(SECRETS, "worker1", "kueue-system")
    (finding,) = (await check(fleet.client, fleet.workers)).worker("worker1").findings
    assert "Secret kueue-system/worker1 does not exist" in finding.problem


async def test_a_kubeconfig_that_kueue_refuses_is_not_tried(fleet: Fleet) -> None:
    secret = fleet.hub.objects(SECRETS)[Key("kueue-system", "worker1")]
    text = "clusters: [{name: w, cluster: {server: 'https://a', insecure-skip-tls-verify: true}}]"
    secret = {**secret, "data": {"kubeconfig": base64.b64encode(text.encode()).decode()}}
    fleet.hub.put(SECRETS, secret)
    insecure, current = (await check(fleet.client, fleet.workers)).worker("worker1").findings
    assert "Secret kueue-system/worker1: clusters[0].cluster.insecure-skip-tls-verify (line 1)" in insecure.problem
    assert current.problem == "Secret kueue-system/worker1: current-context is missing: name the context to use"
    assert fleet.worker.requests == []


async def test_what_a_worker_serves_is_read_from_its_discovery(fleet: Fleet) -> None:
    fleet.worker.runtime_patches = False
    fleet.worker.apis = {"trainer.kubeflow.org/v1alpha1": ("trainjobs",), "kueue.x-k8s.io/v1beta1": ("workloads",)}
    problems = [
        one.problem for one in (await check(fleet.client, fleet.workers)).worker("worker1").check("versions").findings
    ]
    assert problems == [
        "trainer.kubeflow.org/v1alpha1 is served without trainjobs/status, trainingruntimes, clustertrainingruntimes",
        "jobset.x-k8s.io/v1alpha2 is not served",
        "kueue.x-k8s.io/v1beta2 is not served, only v1beta1 of that group",
        "the TrainJob CRD has no spec.runtimePatches, into which Kueue writes: no queued TrainJob ever starts",
    ]


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("registry.k8s.io/kueue/kueue:v0.19.2", "v0.19.2"),
        ("local:5000/kueue:v0.18.0@sha256:abc", "v0.18.0"),
        ("local:5000/kueue", None),
        ("kueue:main", None),
    ],
)
async def test_versions_are_read_from_images(fleet: Fleet, image: str, version: str | None) -> None:
    spec = {"template": {"spec": {"containers": [{"name": "manager", "image": image}]}}}
    meta = {"name": "kueue-controller-manager", "namespace": "kueue-system"}
    fleet.worker.put(DEPLOYMENTS, {"metadata": meta, "spec": spec})
    cluster = (await gather(fleet.client, fleet.workers)).workers[0].cluster
    assert cluster is not None
    assert cluster.engines.get("Kueue") == version


async def test_a_hub_that_does_not_show_its_queues_is_no_silence(fleet: Fleet) -> None:
    fleet.hub.hidden = {"clusterqueues"}
    with pytest.raises(ForbiddenError, match="clusterqueues"):
        await check(fleet.client, fleet.workers)


async def test_a_cluster_without_multikueue_is_no_hub(fleet: Fleet) -> None:
    class Bare(FakeCluster):
        def act(self, asking: Asking, fault: Fault | None) -> dict[str, Any]:
            if asking.target is not None and asking.target.collection.group == "kueue.x-k8s.io":
                asking = asking._replace(target=None)
            return super().act(asking, fault)

    async with Bare() as cluster, cluster.client() as client, Workers(client) as workers:
        with pytest.raises(NotAHubError, match="serves no MultiKueueClusters"):
            await gather(client, workers)


async def test_a_train_job_is_found_by_name(fleet: Fleet) -> None:
    fleet.hub.put(TRAIN_JOBS, train_job())
    assert (await job_named(fleet.client, "research", "tune"))["spec"]["runtimeRef"] == {"name": "torch"}
    with pytest.raises(NoSuchJobError):
        await job_named(fleet.client, "research", "other")


async def test_a_different_runtime_is_found_with_its_difference(fleet: Fleet) -> None:
    fleet.worker.put(CLUSTER_TRAINING_RUNTIMES, runtime(image="old"))
    (finding,) = (await check(fleet.client, fleet.workers)).worker("worker1").check("runtimes").findings
    assert "-  image: old" in finding.diff


async def test_older_kinds_are_asked_for_where_the_hub_serves_them_and_its_kueue_takes_them(fleet: Fleet) -> None:
    fleet.hub.apis["kubeflow.org/v1"] = ("pytorchjobs", "tfjobs")
    fleet.worker.denied = {("pytorchjobs", "create")}
    text = "integrations: {frameworks: [batch/job, kubeflow.org/pytorchjob]}"
    settings = {"name": "kueue-manager-config", "namespace": "kueue-system"}
    fleet.hub.put(CONFIG_MAPS, {"metadata": settings, "data": {"controller_manager_config.yaml": text}})
    (worker,) = (await gather(fleet.client, fleet.workers)).workers
    assert not isinstance(worker.permissions, Unseen)
    assert [one for one, allowed in worker.permissions.items() if not allowed] == [
        Permission("kubeflow.org", "pytorchjobs", "create")
    ]
    assert {one.resource for one in worker.permissions if one.group == "kubeflow.org"} == {
        "pytorchjobs",
        "pytorchjobs/status",
    }


@pytest.mark.parametrize("text", ["a: [", "- 1", "integrations: {frameworks: batch/job}", "integrations: []", ""])
async def test_a_configuration_of_kueue_that_is_none_is_as_if_unseen(fleet: Fleet, text: str) -> None:
    settings = {"name": "kueue-manager-config", "namespace": "kueue-system"}
    fleet.hub.put(CONFIG_MAPS, {"metadata": settings, "data": {"controller_manager_config.yaml": text}})
    assert (await gather(fleet.client, fleet.workers)).hub.frameworks is None
