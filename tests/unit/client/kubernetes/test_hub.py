"""Dispatched jobs through a fake hub view: no pods here, and all of it there."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.client.kubernetes.stage import PATIENCE, Stage
from tests.unit.client.reading.documents import condition, ended, event, pod
from tests.unit.kube.ticking import TickingClock
from trainplane.client.errors import NotFoundError, UnsupportedError
from trainplane.kube import errors as kube
from trainplane.kube.testing.podlogs import ContainerLogs
from trainplane.kube.testing.podserver import PodServer
from trainplane.kube.testing.server import FakeServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web

    from trainplane.kube.resource import Key
    from trainplane.kube.testing.faults import Fault
    from trainplane.kube.testing.verbs import Asking

Tree = dict[str, Any]
GROUP = "hub.trainplane.dev"
DISPATCHED = {"managedBy": "kueue.x-k8s.io/multikueue"}
WORKER: Tree = {"annotations": {"hub.trainplane.dev/cluster": "worker1"}}


@dataclass
class Ranks(PodServer):
    """Logs by step and rank, as the hub has them."""

    ranks: dict[tuple[str, str], ContainerLogs] = field(default_factory=dict)

    async def serve(self, request: web.Request, key: Key, subresource: str) -> web.StreamResponse:
        if GROUP not in request.path:
            return await super().serve(request, key, subresource)
        log = self.ranks.get((request.query["step"], request.query["rank"]))
        if log is None:
            raise kube.NotFoundError("no container has started yet")
        return await log.serve(request)


@dataclass
class HubServer(FakeServer):
    """An API server with a hub view, or without one if there are no parts."""

    pods: PodServer = field(default_factory=Ranks)
    parts: dict[str, Tree] = field(default_factory=dict)

    def act(self, asking: Asking, fault: Fault | None) -> Tree:
        target = asking.target
        if target is None or target.collection.group != GROUP:
            return super().act(asking, fault)
        if not self.parts:
            raise kube.NotFoundError("the server could not find the requested resource")
        if asking.verb == "list":
            return {"items": [self.parts[""]], "metadata": {}}
        if target.subresource not in self.parts:
            raise kube.NotFoundError("there is no such part")
        return self.parts[target.subresource]


class HubStage(Stage):
    """A stage with a hub view."""

    server: HubServer

    def place(self, *pods: Tree, placement: str = "Dispatched", cluster: str = "worker1") -> None:
        """Let the hub show where the job is, and these pods of it."""
        status = {"placement": placement, "cluster": cluster, "reason": "no quota is reserved for it"}
        self.server.parts |= {"": {"metadata": {"name": "a"}, "status": status}, "pods": {"items": list(pods)}}

    def rank(self, number: int, step: str = "node") -> ContainerLogs:
        assert isinstance(self.server.pods, Ranks)
        return self.server.pods.ranks.setdefault((step, str(number)), ContainerLogs())


@pytest.fixture
async def stage() -> AsyncIterator[HubStage]:
    async with TickingClock() as clock, HubServer() as server, server.client(clock=clock) as client:
        stage = HubStage(server, client, clock)
        stage.job(nodes=2, spec=DISPATCHED)
        yield stage


async def test_a_job_that_waits(stage: HubStage) -> None:
    stage.place(placement="Waiting", cluster="")
    job = await stage.backend.get_job("a")
    assert (job.status, job.cluster, job.steps) == ("Suspended", None, [])
    assert job.cause is not None
    assert job.cause.reason == "Queued"
    assert job.cause.message.startswith("no quota is reserved for it. ")


async def test_a_job_on_a_worker(stage: HubStage) -> None:
    stage.place(pod(0, **WORKER), pod(1, **WORKER))
    job = await stage.backend.get_job("a")
    assert (job.status, job.cluster) == ("Running", "worker1")
    assert [(step.name, step.cluster) for step in job.steps] == [("node-0", "worker1"), ("node-1", "worker1")]


async def test_a_failure_on_a_worker_has_its_step(stage: HubStage) -> None:
    stage.job(condition("Failed", "FailedJobs", "failed"), nodes=2, spec=DISPATCHED)
    stage.place(pod(0, **WORKER), pod(1, "Failed", state=ended(3), **WORKER))
    cause = (await stage.backend.get_job("a")).cause
    assert cause is not None
    assert (cause.step, cause.exit_code) == ("node-1", 3)


async def test_the_list_asks_the_hub_in_place_of_pods(stage: HubStage) -> None:
    stage.place()
    (job,) = await stage.backend.list_jobs()
    assert job.cluster == "worker1"
    assert len(stage.server.requests) == 2
    stage.job(name="local")
    assert {job.name for job in await stage.backend.list_jobs()} == {"a", "local"}
    assert len(stage.server.requests) == 5


async def test_events_of_hub_and_worker(stage: HubStage) -> None:
    told = event("Pod", "a-node-0-0-abcde", "Started", annotations=WORKER["annotations"])
    stage.place()
    stage.server.parts["events"] = {"items": [told]}
    (one,) = await stage.backend.list_events("a")
    assert (one.reason, one.cluster) == ("Started", "worker1")


async def test_the_queue_is_explained(stage: HubStage) -> None:
    stage.place()
    stage.server.parts["queue"] = {"state": "Pending"}
    assert await stage.backend.explain_queue("a") == {"state": "Pending"}


async def test_a_hub_without_a_view_shows_the_status_and_says_what_is_lacking(stage: HubStage) -> None:
    jobs = [{"name": "node", "active": 1, "ready": 1}]
    stage.job(nodes=2, spec=DISPATCHED, jobs=jobs)
    job = await stage.backend.get_job("a")
    assert (job.status, job.cluster, job.steps) == ("Running", None, [])
    assert (await stage.backend.list_jobs())[0].status == "Running"
    assert await stage.backend.explain_queue("a") is None
    assert await stage.backend.list_events("a") == []
    for follow in (False, True):
        with pytest.raises(UnsupportedError, match="ask an admin to install the hub view"):
            await anext(stage.backend.read_logs("a", None, follow=follow))


async def test_the_watch_sees_pods_of_the_worker(stage: HubStage) -> None:
    stage.place(placement="Waiting", cluster="")
    async with asyncio.timeout(PATIENCE), aclosing(stage.backend.watch_job("a")) as changes:
        assert (await anext(changes)).status == "Suspended"
        stage.place(pod(0, **WORKER), pod(1, **WORKER))
        stage.job(nodes=2, spec=DISPATCHED, metadata={"annotations": {"x": "y"}})
        seen = [await anext(changes)]
        while seen[-1].status != "Running":
            seen.append(await anext(changes))
        assert seen[-1].cluster == "worker1"


async def test_logs_of_all_ranks_there_are(stage: HubStage) -> None:
    stage.place(pod(0, **WORKER), pod(1, **WORKER))
    for number in range(6):
        stage.print(stage.rank(number % 2), f"line {number}")
    assert await stage.read() == [f"[node-{number % 2}] line {number}" for number in range(6)]
    assert await stage.read("node-1") == [f"[node-1] line {number}" for number in (1, 3, 5)]
    with pytest.raises(NotFoundError, match="node-9"):
        await stage.read("node-9")


async def test_a_launcher_is_asked_for_by_its_own_name(stage: HubStage) -> None:
    stage.place(pod(role="launcher", **WORKER), pod(0, **WORKER))
    stage.print(stage.rank(0, "launcher"), "launched")
    stage.print(stage.rank(0), "worked")
    assert await stage.read() == ["[node-0] launched", "[node-1] worked"]


@pytest.mark.parametrize("how", ["mid-line", "reset", "clean"])
async def test_followed_from_before_it_is_placed_through_broken_streams(stage: HubStage, how: Any) -> None:
    stage.place(placement="Waiting", cluster="")
    following = stage.follow()
    await stage.until(lambda: stage.server.asked("watch", "trainjobs"))
    logs = [stage.rank(0), stage.rank(1)]
    stage.place(pod(0, **WORKER), pod(1, **WORKER))
    stage.job(nodes=2, spec=DISPATCHED, metadata={"annotations": {"x": "y"}})
    for number in range(20):
        stage.print(logs[number % 2], f"line {number}")
    await stage.until(lambda: len(stage.lines) == 20)
    logs[0].breach(how)
    for number in range(20, 30):
        stage.print(logs[number % 2], f"line {number}")
    await stage.until(lambda: len(stage.lines) == 30)
    for log in logs:
        log.end()
    stage.job(condition("Complete"), nodes=2, spec=DISPATCHED)
    await asyncio.wait_for(following, PATIENCE)
    for rank in (0, 1):
        texts = [line.text for line in stage.lines if line.step == f"node-{rank}"]
        assert texts == [f"line {number}" for number in range(rank, 30, 2)]
