"""The whole operator with older kinds, against the fake API server, over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from tests.unit.operator.legacy.world import job
from tests.unit.operator.objects import NAMESPACE
from tests.unit.operator.test_main import running, server, until
from trainplane.api.configuration import Legacy
from trainplane.kube.cabundle import CUSTOM_RESOURCE_DEFINITIONS
from trainplane.kube.resource import Key
from trainplane.resources import CONFIG_MAPS, LEGACY_JOBS, PODS, SECRETS, SERVICES
from trainplane.resources import JOBS as BATCH_JOBS

if TYPE_CHECKING:
    from trainplane.kube.testing.server import FakeServer

__all__ = ["server"]

Tree = dict[str, Any]

PYTORCH_JOBS, MPI_JOBS = LEGACY_JOBS["PyTorchJob"], LEGACY_JOBS["MPIJob"]
KEY = Key(NAMESPACE, "job")
ALL = Legacy(kinds=["pytorchjobs", "mpijobs"])
CRD = {
    "metadata": {"name": "mpijobs.kubeflow.org"},
    "spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": "s"}}}}},
}


def replicas(count: int, container: str = "pytorch", **changes: Any) -> Tree:
    template = {"spec": {"containers": [{"name": container, "image": "img"}]}}
    return {"replicas": count, "template": template, **changes}


def pytorch_job(**run_policy: Any) -> Tree:
    made = job(**run_policy)
    made["spec"]["pytorchReplicaSpecs"] = {"Master": replicas(1), "Worker": replicas(2)}
    return made


def mpi_job() -> Tree:
    meta = {"name": "job", "namespace": NAMESPACE, "uid": "uid-mpi", "creationTimestamp": "2026-01-01T00:00:00Z"}
    specs = {"Launcher": replicas(1, "mpi"), "Worker": replicas(2, "mpi")}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": meta,
        "spec": {"mpiReplicaSpecs": specs},
    }


def set_phase(server: FakeServer, name: str, phase: str) -> None:
    pod = server.objects(PODS)[Key(NAMESPACE, name)]
    server.put(PODS, {**pod, "status": {"phase": phase}})


def conditions(server: FakeServer, resource: Any = PYTORCH_JOBS) -> dict[str, str]:
    status = server.objects(resource)[KEY].get("status") or {}
    return {one["type"]: one["status"] for one in status.get("conditions") or ()}


async def test_a_pytorchjob_from_its_creation_to_its_end(server: FakeServer) -> None:
    server.put(CUSTOM_RESOURCE_DEFINITIONS, CRD)
    async with running(server, legacy=ALL):
        server.put(PYTORCH_JOBS, pytorch_job())
        await until(lambda: len(server.objects(PODS)) == 3)
        assert sorted(key.name for key in server.objects(SERVICES)) == ["job-master-0", "job-worker-0", "job-worker-1"]
        for name in ("job-master-0", "job-worker-0", "job-worker-1"):
            set_phase(server, name, "Running")
        await until(lambda: conditions(server).get("Running") == "True")
        set_phase(server, "job-master-0", "Succeeded")
        await until(lambda: conditions(server).get("Succeeded") == "True")


async def test_an_mpijob_gets_its_workers_its_launcher_and_what_they_need(server: FakeServer) -> None:
    server.put(CUSTOM_RESOURCE_DEFINITIONS, CRD)
    async with running(server, legacy=ALL):
        server.put(MPI_JOBS, mpi_job())
        launcher = await until(lambda: server.objects(BATCH_JOBS).get(Key(NAMESPACE, "job-launcher")))
        assert sorted(key.name for key in server.objects(PODS)) == ["job-worker-0", "job-worker-1"]
        assert Key(NAMESPACE, "job-ssh") in server.objects(SECRETS)
        assert Key(NAMESPACE, "job-config") in server.objects(CONFIG_MAPS)
        ended = [{"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:01:00Z"}]
        done = {"conditions": ended, "succeeded": 1, "completionTime": "2026-01-01T00:01:00Z"}
        server.put(BATCH_JOBS, {**launcher, "status": done})
        await until(lambda: conditions(server, MPI_JOBS).get("Succeeded") == "True")


async def test_a_job_that_multikueue_runs_elsewhere_is_left_alone(server: FakeServer) -> None:
    server.put(CUSTOM_RESOURCE_DEFINITIONS, CRD)
    async with running(server, legacy=ALL):
        server.put(PYTORCH_JOBS, pytorch_job(managedBy="kueue.x-k8s.io/multikueue"))
        other = pytorch_job()
        other["metadata"] |= {"name": "other", "uid": "uid-other"}
        server.put(PYTORCH_JOBS, other)
        await until(lambda: len(server.objects(PODS)) == 3)
        assert all(key.name.startswith("other-") for key in server.objects(PODS))
        assert not server.objects(PYTORCH_JOBS)[KEY].get("status")


async def test_nothing_of_theirs_is_watched_unless_a_kind_is_named(server: FakeServer) -> None:
    async with running(server) as operator:
        await until(operator.manager.ready.is_set)
        assert not operator.legacy_jobs.controllers
        assert not [
            asked.path for asked in server.requests if "kubeflow.org/v1/" in asked.path or "/batch/" in asked.path
        ]


async def test_only_the_kinds_that_are_named_are_watched(server: FakeServer) -> None:
    async with running(server, legacy=Legacy(kinds=["xgboostjobs"])) as operator:
        await until(operator.manager.ready.is_set)
        watched = {reflector.resource.plural for reflector in operator.legacy_jobs.reflectors(None)}
        assert watched == {"pods", "services", "xgboostjobs"}


async def test_the_crd_of_mpijobs_is_made_to_trust_the_operator_that_converts(server: FakeServer) -> None:
    server.put(CUSTOM_RESOURCE_DEFINITIONS, CRD)
    async with running(server, legacy=ALL):

        def bundle() -> Any:
            crd = server.objects(CUSTOM_RESOURCE_DEFINITIONS)[Key("", "mpijobs.kubeflow.org")]
            return crd["spec"]["conversion"]["webhook"]["clientConfig"].get("caBundle")

        await until(bundle)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "no ConversionReview"),
        (b"[" * 100_000, 400, "no ConversionReview"),
        (b'{"request": {"uid": "u", "desiredAPIVersion": "v9", "objects": []}}', 200, '"Failure"'),
        (b'{"request": {"uid": "u", "desiredAPIVersion": "kubeflow.org/v1", "objects": []}}', 200, '"Success"'),
    ],
)
async def test_conversions_are_answered_whatever_is_asked(
    server: FakeServer, body: bytes, status: int, words: str
) -> None:
    server.put(CUSTOM_RESOURCE_DEFINITIONS, CRD)
    async with running(server, legacy=ALL) as operator, aiohttp.ClientSession() as session:
        await until(lambda: operator.tls.loaded and operator.webhooks.listener.serving)
        url = f"https://127.0.0.1:{operator.webhooks.listener.port}/convert"
        async with session.post(url, data=body, ssl=False) as answer:
            assert answer.status == status
            assert words in await answer.text()
