"""What broke the hub view under fire: workers that are lost, renamed, removed, hung, or have a clock of their own."""

from __future__ import annotations

import asyncio
import base64
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import aiohttp
import msgspec
import pytest
import yaml

from tests.security.processes import HubProcess
from tests.unit.hub.check_objects import FakeCluster, content, multikueue
from tests.unit.hub.fakeworker import kubeconfig, serving, tree
from tests.unit.hub.hubstage import MULTIKUEUE, PATIENCE, QUICK, ROOT, HubStage
from tests.unit.hub.kept import NAMESPACE_UID, numbered, parsed, pod
from tests.unit.hub.pending_world import RESERVED, check, cluster_queue, job, local_queue, workload
from tests.unit.hub.test_workers import put_worker
from tests.unit.kube.io.support import until
from tests.unit.kube.ticking import TickingClock
from trainplane.api import names
from trainplane.hub.apiserver import logs
from trainplane.hub.apiserver.logquery import LogQuery
from trainplane.hub.check.judge import check as check_fleet
from trainplane.hub.logarchive.archive import Archive
from trainplane.hub.logarchive.collector import CollectorSettings, LogCollector
from trainplane.hub.logarchive.jobs import Jobs
from trainplane.hub.logarchive.retention import Retention
from trainplane.hub.watched import Watched
from trainplane.hub.workers import Workers
from trainplane.kube.client import Client
from trainplane.kube.pki import CertificatePolicy, renew
from trainplane.kube.testing.clock import FakeClock
from trainplane.kube.testing.faults import Hang
from trainplane.kube.testing.server import FakeServer
from trainplane.kube.transport import TransportSettings
from trainplane.resources import (
    ADMISSION_CHECKS,
    CLUSTER_QUEUES,
    EVENTS,
    LOCAL_QUEUES,
    MULTIKUEUE_CONFIGS,
    TRAIN_JOBS,
    WORKLOADS,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[HubStage]:
    async with HubStage(tmp_path) as running:
        yield running


@pytest.fixture
async def worker2(stage: HubStage) -> AsyncIterator[FakeServer]:
    """One more worker."""
    async with FakeServer() as server, server.client(settings=QUICK, clock=stage.clock) as client:
        stage.workers.clients["worker2"] = client
        await stage.until(lambda: "worker2" in stage.collector.mirrors)
        yield server
        del stage.workers.clients["worker2"]
        await stage.until(lambda: "worker2" not in stage.collector.mirrors)


class Reader:
    """Somebody who follows a log."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.is_at_end = False


@asynccontextmanager
async def following(stage: HubStage, path: str = "x/log?follow=true") -> AsyncIterator[Reader]:
    """Follow a log for the time of the context."""
    reader = Reader()

    async def read() -> None:
        url = f"{ROOT}/namespaces/team/trainjobs/{path}"
        async with stage.session() as session, session.get(url, headers={"X-Remote-User": "ana"}) as answer:
            async for line in answer.content:
                reader.lines.append(line.decode().rstrip("\n"))
        reader.is_at_end = True

    reading = asyncio.create_task(read())
    try:
        yield reader
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


def lines(count: int, first: int = 0) -> list[str]:
    return [f"line {number}" for number in range(first, first + count)]


@pytest.mark.finding("hub-and-sdk", 4, "a log that is followed stood still for good when its worker was lost")
async def test_a_log_is_followed_from_a_lost_worker_to_the_next(stage: HubStage, worker2: FakeServer) -> None:
    stage.put_job()
    first = stage.put_pod("x-node-0-0-aaaaa")
    stage.print(first, 3)
    await stage.until_log(3)
    async with following(stage) as reader:
        await stage.until(lambda: reader.lines == lines(3))
        await stage.worker.stop()
        stage.put_job(cluster="worker2")
        second = stage.put_pod("x-node-0-0-bbbbb", server=worker2)
        stage.print(second, 3, 100)
        await stage.until(lambda: reader.lines == [*lines(3), *lines(3, 100)])
        second.end()
        stage.put_pod("x-node-0-0-bbbbb", server=worker2, state="terminated")
        stage.put_job(cluster="worker2", condition="Complete")
        await stage.until(lambda: reader.is_at_end)
        assert reader.lines == [*lines(3), *lines(3, 100)]


@pytest.mark.finding("hub-and-sdk", 4, "lines of a worker that was lost and came back were in no followed log")
async def test_what_a_lost_worker_still_brings_is_shown_once(stage: HubStage, worker2: FakeServer) -> None:
    stage.put_job()
    first = stage.put_pod("x-node-0-0-aaaaa")
    stage.print(first, 3)
    await stage.until_log(3)
    async with following(stage) as reader:
        await stage.until(lambda: len(reader.lines) == 3)
        await stage.worker.stop()
        stage.print(first, 2, 3)
        stage.put_job(cluster="worker2")
        second = stage.put_pod("x-node-0-0-bbbbb", server=worker2)
        stage.print(second, 1, 100)
        await stage.until(lambda: len(reader.lines) == 4)
        await stage.worker.start()
        await stage.until(lambda: len(reader.lines) == 6)
        assert reader.lines == [*lines(3), *lines(1, 100), *lines(2, 3)]


@pytest.mark.finding("hub-and-sdk", 13, "a worker whose clock is ahead kept its old run in the new one's place")
async def test_runs_are_in_the_order_in_which_the_hub_saw_them(tmp_path: Path) -> None:
    clock = FakeClock()
    archive = Archive(tmp_path / "data", Retention(), clock)
    kept_job = archive.admit("job-1", "team", "x", NAMESPACE_UID)
    for name, cluster, created in (("old", "worker1", "05:05:00"), ("new", "worker2", "05:02:00")):
        tree = pod(f"x-node-0-0-{name}", created=f"2026-11-15T{created}Z")
        kept = archive.put_pod(kept_job, cluster, parsed(tree))
        archive.append(kept_job, kept.journal("node", 0), numbered(1, text=name))
        await clock.advance(60)
    archive.close()
    archive = Archive(tmp_path / "data", Retention(), clock)  # what was seen first is not forgotten
    found = archive.job("job-1")
    assert found is not None
    assert b"".join(logs.read(found, LogQuery(), 0)) == b"new 0\n"
    assert b"".join(logs.read(found, LogQuery(previous=True), 0)) == b"old 0\n"
    archive.close()


@pytest.mark.finding("hub-and-sdk", 12, "logs of a worker that was renamed were asked for under its old name for ever")
async def test_a_log_goes_on_under_its_workers_new_name(stage: HubStage) -> None:
    stage.put_job()
    printed = stage.put_pod()
    stage.print(printed, 3)
    await stage.until_log(3)
    async with following(stage) as reader, stage.worker.client(settings=QUICK, clock=stage.clock) as client:
        await stage.until(lambda: len(reader.lines) == 3)
        stage.workers.clients = {"gpu-west": client}
        stage.put_job(cluster="gpu-west")
        await stage.until(lambda: set(stage.collector.mirrors) == {"", "gpu-west"})
        printed.breach("reset")
        stage.print(printed, 3, 3)
        await stage.until(lambda: reader.lines == lines(6))
        pods = msgspec.json.decode((await stage.get("x/pods")).body)["items"]
        assert [each["metadata"]["annotations"]["hub.trainplane.dev/cluster"] for each in pods] == ["gpu-west"]
        printed.end()
        stage.put_pod(state="terminated")
        stage.put_job(cluster="gpu-west", condition="Complete")
        await stage.until(lambda: reader.is_at_end)
        assert reader.lines == lines(6)
        stage.workers.clients = {}
        await stage.until(lambda: "gpu-west" not in stage.collector.mirrors)


@pytest.mark.finding("hub-and-sdk", 12, "a worker that was removed left streams that were tried for ever, and no end")
async def test_a_log_of_a_worker_that_is_removed_says_so_once_and_ends(tmp_path: Path) -> None:
    async with HubStage(tmp_path, removed_seconds=1.0) as stage:
        stage.put_job()
        stage.print(stage.put_pod(), 3)
        await stage.until_log(3)
        lost = "[trainplane] lines may be missing here: worker worker1 was removed from the hub"
        async with following(stage) as reader:
            await stage.until(lambda: len(reader.lines) == 3)
            stage.workers.clients = {}
            stage.put_job(condition="Failed")
            await stage.until(lambda: reader.is_at_end)
            assert reader.lines == [*lines(3), lost]
        assert stage.collector.follower("uid-x-node-0-0-abcde", "node") is None
        await stage.stop()
        await stage.start()  # and a server that starts later does not say it again
        moment = stage.clock.monotonic() + 2 * stage.settings.removed_seconds
        await stage.until(lambda: stage.clock.monotonic() > moment)
        assert (await stage.get("x/log")).text.splitlines() == [*lines(3), lost]


@pytest.mark.finding("hub-and-sdk", 10, "past the limit of streams a log was an empty answer, and nothing said why")
async def test_more_logs_than_can_be_followed_are_read_and_their_readers_told(tmp_path: Path) -> None:
    async with HubStage(tmp_path, streams=2) as stage:
        stage.put_job()
        for rank in (2, 1, 0):
            stage.print(stage.put_pod(f"x-node-0-{rank}-abcde", index=rank), 3)
            await stage.until_log(3, f"x/log?rank={rank}")
        answer = await stage.get("x/log?rank=0")
        assert answer.text.splitlines() == lines(3)
        assert "2 logs of worker worker1 are followed already, as many as may be at once" in answer.headers["Warning"]
        assert stage.metric("trainplane_hub_log_streams_refused_total", cluster="worker1") > 0


@pytest.mark.finding("hub-and-sdk", 10, "logs of jobs on the hub took the streams that its own watches need")
async def test_watches_never_wait_for_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = FakeServer.client
    few = TransportSettings(attempts=1, streams=4)  # what the hub's watches need, and one
    monkeypatch.setattr(FakeServer, "client", lambda server, **others: connect(server, **(others | {"settings": few})))
    async with HubStage(tmp_path) as stage:
        for number in range(8):
            stage.put_job(f"j{number}", uid=f"u{number}", local=True)
            name = f"j{number}-node-0-0-a"
            stage.print(stage.put_pod(name, server=stage.hub, of=f"u{number}", job=f"j{number}", uid=f"p{number}"), 2)
        for number in range(8):
            assert await stage.until_log(2, f"j{number}/log") == lines(2)
        await stage.hub.stop()  # and all streams open again at once
        await stage.hub.start()
        stage.put_job("j0", uid="u0", local=True, condition="Complete")
        await stage.until(lambda: (kept := stage.archive.job("u0")) and kept.record.finished)


@pytest.mark.finding("hub-and-sdk", 15, "a worker that hangs held up /events past the API server's patience")
async def test_a_worker_that_hangs_does_not_hold_up_the_others_events(stage: HubStage) -> None:
    stage.put_job()
    stage.put_pod()
    await stage.until(lambda: stage.archive.job("job-1"))
    stage.worker.add_fault(Hang(verb="list", plural="events", times=None))
    about = {"kind": "TrainJob", "name": "x", "namespace": "team"}
    metadata = {"name": "x.1", "namespace": "team"}
    stage.hub.put(EVENTS, {"metadata": metadata, "involvedObject": about, "reason": "CreatedWorkload"})
    answer = await asyncio.wait_for(stage.get("x/events"), PATIENCE)
    assert [event["reason"] for event in msgspec.json.decode(answer.body)["items"]] == ["CreatedWorkload"]
    assert "events of worker worker1 are missing: no answer within 10 s" in answer.headers["Warning"]


@pytest.mark.finding("hub-and-sdk", 15, "a worker that hangs held up /queue for half a minute")
async def test_a_worker_that_hangs_does_not_hold_up_why_a_job_waits(stage: HubStage, worker2: FakeServer) -> None:
    found = workload(conditions=RESERVED)
    found["metadata"]["labels"] = {names.LABEL_JOB_UID: "uid-job"}
    queue = cluster_queue(admissionChecksStrategy={"admissionChecks": [{"name": "mk"}]})
    config = {"metadata": {"name": "cfg"}, "spec": {"clusters": ["worker1", "worker2"]}}
    for resource, stored in (
        (TRAIN_JOBS, job(managedBy=MULTIKUEUE)),
        (WORKLOADS, found),
        (CLUSTER_QUEUES, queue),
        (LOCAL_QUEUES, local_queue()),
        (ADMISSION_CHECKS, check("mk", controller=MULTIKUEUE, parameters={"name": "cfg"})),
        (MULTIKUEUE_CONFIGS, config),
    ):
        stage.hub.put(resource, stored)
    for verb in ("list", "get"):
        stage.worker.add_fault(Hang(verb=verb, times=None))
    answer = await asyncio.wait_for(stage.get("job/queue"), PATIENCE)
    assert answer.status == 200, answer.text
    clusters = {each["cluster"]: each["summary"] for each in msgspec.json.decode(answer.body)["clusters"]}
    assert clusters["worker1"] == "worker worker1 cannot be reached: no answer within 10 s."
    assert "cannot be reached" not in clusters["worker2"]


@pytest.mark.finding("hub-and-sdk", 15, "each worker cost the hub two requests every five seconds, with nothing to do")
async def test_a_fleet_that_is_well_is_not_asked_again_and_again(tmp_path: Path) -> None:
    """For figures of a large fleet see benchmarks/hub."""
    settings, count = CollectorSettings(interval=0.05), 3
    async with AsyncExitStack() as stack:
        clock = await stack.enter_async_context(TickingClock())
        hub = await stack.enter_async_context(FakeServer())
        client = await stack.enter_async_context(hub.client(clock=clock))
        servers = [await stack.enter_async_context(FakeServer(tokens={"t"}, tls=serving())) for _ in range(count)]
        for number, server in enumerate(servers):
            put_worker(hub, f"worker{number}", kubeconfig(server.url))
        watched = Watched(client, clock, namespace="kueue-system")
        workers = await stack.enter_async_context(Workers(watched))
        archive, jobs = Archive(tmp_path / "data", Retention(), clock), Jobs(client, clock)
        collector = LogCollector(client, workers, jobs, archive, clock=clock, settings=settings)
        reflectors = [*jobs.reflectors, *watched.reflectors]
        tasks = [asyncio.create_task(part) for part in (collector.run(), *(each.run() for each in reflectors))]
        async with asyncio.timeout(PATIENCE):
            await collector.looked.wait()
            first = collector.mirrors["worker0"]
            of_pods = [reflector for mirror in collector.mirrors.values() for reflector in mirror.reflectors]
            for reflector in (*reflectors, *of_pods):
                await reflector.synced.wait()
            synced = clock.monotonic()
            await until(lambda: clock.monotonic() > synced + 10 * settings.interval)  # a look may have been under way
            before = [len(server.requests) for server in (hub, *servers)]
            await until(lambda: clock.monotonic() > synced + 60 * settings.interval)
        assert [len(server.requests) for server in (hub, *servers)] == before
        put_worker(hub, "worker0", kubeconfig(servers[1].url))  # and what changes counts at once
        async with asyncio.timeout(PATIENCE):
            await until(lambda: collector.mirrors["worker0"] is not first)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        archive.close()


@pytest.mark.parametrize(("days", "level"), [(20, "warns"), (-1, "stops")])
@pytest.mark.finding("hub-and-sdk", 7, "nobody was told that a worker's client certificate ends, or has ended")
async def test_the_fleet_check_knows_when_a_client_certificate_ends(days: int, level: str) -> None:
    made = datetime.now(UTC) - timedelta(days=10)
    policy = CertificatePolicy(("multikueue",), serving_life=timedelta(days=10 + days), ahead=timedelta(0))
    material = renew(None, policy, made)[0]
    pair = {"client-certificate-data": material.tls_crt, "client-key-data": material.tls_key}
    async with FakeCluster() as hub, FakeCluster(tls=serving()) as worker, hub.client() as client:
        hub.fill({**content(checks=("mk",)), **multikueue("worker1")})
        config = tree(worker.url)
        config["users"][0]["user"] = {key: base64.b64encode(data).decode() for key, data in pair.items()}
        put_worker(hub, "worker1", yaml.safe_dump(config))
        async with Workers(client, connect=lambda config: Client.connect(config, settings=QUICK)) as workers:
            report = await check_fleet(client, workers)
    findings = report.worker("worker1").check("credentials").findings
    (finding,) = [each for each in findings if "the client certificate end" in each.problem]
    assert finding.level == level
    assert "Secret kueue-system/worker1-secret" in finding.problem


@pytest.mark.finding("hub-and-sdk", 15, "the hub showed no metrics")
async def test_the_hub_shows_how_it_does_to_who_may_see_it(tmp_path: Path) -> None:
    with ExitStack() as stack:
        hub = HubProcess(tmp_path, stack, 1 << 16)
        connector = aiohttp.TCPConnector(ssl=hub.trusting())
        url, headers = f"https://localhost:{hub.metrics_port}/metrics", {"Authorization": "Bearer scraper"}
        async with aiohttp.ClientSession(connector=connector) as session:
            async with session.get(url, headers=headers) as answer:
                shown = await answer.text()
            async with session.get(url) as refused:
                assert refused.status == 401
    for name in ("kept_bytes", "kept_bytes_limit", "log_streams_limit", "log_gaps_total", "set_aside_total"):
        assert f"\ntrainplane_hub_{name} " in shown
    assert "rest_client_requests_total{" in shown
