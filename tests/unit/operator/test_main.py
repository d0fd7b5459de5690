"""The whole operator against the fake API server, over HTTP, on the machine's clock."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import json
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from tests.unit.kube.ticking import TickingClock
from tests.unit.operator.objects import NAMESPACE, condition, counts, runtime, train_job
from trainplane.api.configuration import (
    CertManagement,
    Configuration,
    Health,
    LeaderElection,
    Metrics,
    StatusServer,
    Webhook,
)
from trainplane.kube.lease import LEASES, LeadershipLostError
from trainplane.kube.resource import Key
from trainplane.kube.testing.faults import Refuse
from trainplane.kube.testing.server import FakeServer
from trainplane.operator import __main__ as entry
from trainplane.operator.main import Operator
from trainplane.operator.settings import Settings
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, CONFIG_MAPS, JOB_SETS, TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

EVENTS = JOB_SETS.__class__("", "v1", "events", "Event")
KEY = Key(NAMESPACE, "job")


def settings(**parts: Any) -> Settings:
    chosen: dict[str, Any] = {
        "webhook": Webhook(port=0, host="127.0.0.1"),
        "metrics": Metrics(bind_address="127.0.0.1:0", secure_serving=False),
        "health": Health(health_probe_bind_address="127.0.0.1:0"),
        "cert_management": CertManagement(enable=True),
        "status_server": StatusServer(port=0),
        **parts,
    }
    return Settings(configuration=Configuration(**chosen), shutdown_delay=0.0)


async def until(there: Callable[[], Any]) -> Any:
    """Let the loop run until something is so."""
    async with asyncio.timeout(60):
        while not (found := there()):  # noqa: ASYNC110 what is waited for has no event
            await asyncio.sleep(0.002)
    return found


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as server:
        server.put(CLUSTER_TRAINING_RUNTIMES, runtime())
        for kind, name in (("Mutating", "defaulter"), ("Validating", "validator")):
            resource = JOB_SETS.__class__(
                "admissionregistration.k8s.io",
                "v1",
                f"{kind.lower()}webhookconfigurations",
                f"{kind}WebhookConfiguration",
                namespaced=False,
            )
            webhooks = [{"name": "x", "clientConfig": {"service": {"name": "s", "namespace": "n"}}}]
            server.put(resource, {"metadata": {"name": f"{name}.trainer.kubeflow.org"}, "webhooks": webhooks})
        yield server


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Leave the garbage collector as it was."""
    yield
    gc.unfreeze()


@contextlib.asynccontextmanager
async def running(server: FakeServer, **parts: Any) -> AsyncIterator[Operator]:
    async with server.client() as client:
        operator = Operator(settings(**parts), client)
        task = asyncio.create_task(operator.run())
        try:
            yield operator
            operator.stop()
            await asyncio.wait_for(task, 60)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_trainjob_from_its_creation_to_its_end(server: FakeServer) -> None:
    async with running(server) as operator:
        server.put(TRAIN_JOBS, train_job())
        jobset = await until(lambda: server.objects(JOB_SETS).get(KEY))
        assert Key(NAMESPACE, "job-runtime-snapshot") in server.objects(CONFIG_MAPS)
        done = condition("Completed", "AllJobsCompleted")
        server.put(
            JOB_SETS, {**jobset, "status": {"replicatedJobsStatus": [counts(succeeded=1)], "conditions": [done]}}
        )
        ended = await until(lambda: (server.objects(TRAIN_JOBS)[KEY].get("status") or {}).get("conditions"))
        assert [one["type"] for one in ended] == ["Complete"]
        (event,) = await until(lambda: list(server.objects(EVENTS).values()))
        assert event["reason"] == "Completed"
        told = ["created JobSet job for 2 pods", "pods are ready: training runs", "AllJobsCompleted"]
        assert [one for one in told if one in event["message"]] == told
        assert event["involvedObject"]["kind"] == "TrainJob"
        assert event["firstTimestamp"]
        assert event["source"] == {"component": "trainer-trainjob-controller"}
        assert operator.metrics.registry.get_sample_value(
            "controller_runtime_reconcile_total", {"controller": "trainjob_controller", "result": "success"}
        )
    writes = [(one.verb, one.path.rsplit("/", 2)[-2:]) for one in server.requests if one.verb in {"create", "patch"}]
    assert [verb for verb, path in writes if "jobsets" in path] == ["patch"]


@pytest.mark.parametrize("code", [403, 404])
async def test_what_it_owns_is_back_when_somebody_deletes_it_and_it_does_without_groups(
    server: FakeServer, code: int
) -> None:
    server.add_fault(Refuse(code=code, plural="podgroups", times=None))
    snapshot = Key(NAMESPACE, "job-runtime-snapshot")
    async with running(server) as operator:
        server.put(TRAIN_JOBS, train_job())
        jobset = await until(lambda: server.objects(JOB_SETS).get(KEY))
        server.put(JOB_SETS, {**jobset, "status": {"replicatedJobsStatus": [counts(active=1, ready=1)]}})
        await until(lambda: (server.objects(TRAIN_JOBS)[KEY].get("status") or {}).get("runtimeDigest"))
        assert operator._mirrors_check() is None
        before = server.objects(CONFIG_MAPS)[snapshot]
        server.remove(CONFIG_MAPS, snapshot.name, NAMESPACE)
        after = await until(lambda: server.objects(CONFIG_MAPS).get(snapshot))
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
        assert after["data"] == before["data"]
    watched = {one.headers["Accept"] for one in server.asked("watch", "configmaps")}
    assert watched == {"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    assert len(server.asked("watch", "podgroups")) == 2, "one of each kind, and none for the next minute"


async def test_it_becomes_ready_and_says_what_it_waits_for(server: FakeServer) -> None:
    async with running(server) as operator, aiohttp.ClientSession() as session:
        await until(lambda: operator.manager.ready.is_set() and operator.tls.loaded)
        assert operator._mirrors_check() is None
        assert operator._certificates_check() is None
        assert operator._webhooks_check() is None
        operator.reflectors[0].synced.clear()
        assert "clustertrainingruntimes" in (operator._mirrors_check() or "")
        url = f"https://127.0.0.1:{operator.webhooks.listener.port}/validate-trainer-kubeflow-org-v1alpha1-trainjob"
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "7",
                "operation": "CREATE",
                "kind": {"kind": "TrainJob"},
                "name": "job",
                "namespace": NAMESPACE,
                "object": train_job(runtime_ref={"name": "ghost"}),
            },
        }
        async with session.post(url, json=review, ssl=False) as answer:
            verdict = json.loads(await answer.read())["response"]
        assert verdict["allowed"] is False
        assert verdict["status"]["code"] == 403
        assert "ghost" in verdict["status"]["message"]
        labels = {"webhook": "/validate-trainer-kubeflow-org-v1alpha1-trainjob", "code": "200"}
        name = "controller_runtime_webhook_requests_total"
        assert operator.metrics.registry.get_sample_value(name, labels) == 1


async def test_followers_are_warm_and_do_not_write(server: FakeServer) -> None:
    election = LeaderElection()
    async with running(server, leader_election=election) as leader:
        await until(lambda: leader.elector is not None and leader.elector.is_leader())
        async with running(server, leader_election=election) as follower:
            await until(follower.manager.ready.is_set)
            server.put(TRAIN_JOBS, train_job())
            await until(lambda: server.objects(JOB_SETS).get(KEY))
            await until(lambda: follower.stores.train_job(KEY))
            assert follower.elector is not None
            assert not follower.elector.is_leader()
            assert len(follower.train_jobs.queue) == 1
    (lease,) = server.objects(LEASES).values()
    assert lease["metadata"]["name"] == "trainer.kubeflow.org"
    assert lease["spec"]["holderIdentity"] == ""  # given back at the end


async def test_a_leader_that_loses_its_lease_ends(server: FakeServer) -> None:
    async with TickingClock() as clock, server.client() as client:
        operator = Operator(settings(leader_election=LeaderElection()), client, clock)
        task = asyncio.create_task(operator.run())
        await until(lambda: operator.elector is not None and operator.elector.is_leader())
        assert operator.elector is not None
        operator.elector._candidacy.deadline = 0.0
        with pytest.raises(ExceptionGroup) as raised:
            await asyncio.wait_for(task, 60)
        assert raised.group_contains(LeadershipLostError)


async def test_no_servers_where_the_file_says_so(server: FakeServer) -> None:
    parts = {
        "metrics": Metrics(bind_address="0"),
        "health": Health(health_probe_bind_address="0"),
        "feature_gates": {"TrainJobStatus": False},
    }
    async with running(server, **parts) as operator:
        assert operator._listeners() == []
        await until(operator.manager.ready.is_set)


def test_a_wrong_file_ends_it_with_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("apiVersion: v1\nkind: Configuration\n")
    assert entry.main([f"--config={path}"]) == 1
    assert "apiVersion" in capsys.readouterr().err


def test_a_wrong_level_ends_it_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(["--zap-log-level=loud"]) == 1
    assert "--zap-log-level: log level 'loud'" in capsys.readouterr().err


async def test_an_operator_of_one_namespace_asks_for_nothing_elsewhere(server: FakeServer) -> None:
    async with server.client() as client:
        whole = Operator(settings(), client)
        scoped = Operator(dataclasses.replace(settings(), watch_namespace="team-a"), client)
    assert {(one.resource.plural, one._namespace) for one in scoped.reflectors} == {
        (plural, "team-a")
        for plural in ("trainingruntimes", "jobsets", "trainjobs", "pods", "configmaps", "podgroups", "services")
    }
    assert len([one for one in whole.reflectors if one.needed]) == 5
    assert all(one._namespace is None for one in whole.reflectors)


@pytest.mark.parametrize("reports", [True, False])
async def test_senders_of_output_can_ask_if_pods_may_report(server: FakeServer, reports: bool) -> None:
    async with server.client() as client:
        pipeline = Operator(settings(feature_gates={"TrainJobStatus": reports}), client).pipeline
    assert pipeline is not None
    plugins = [one.name for one in pipeline.plugins]
    assert "Output" in plugins
    if reports:
        assert plugins.index("Output") < plugins.index("TrainJobStatus"), "the sender gets what it asks with"
