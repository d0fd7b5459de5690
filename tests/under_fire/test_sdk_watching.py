"""Who watches a dispatched job does not fetch every pod of it every two seconds (hub-and-sdk 15)."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from tests.unit.client.kubernetes.stage import PATIENCE
from tests.unit.client.kubernetes.test_hub import DISPATCHED, WORKER, HubServer, HubStage
from tests.unit.client.reading.documents import ended, pod
from tests.unit.kube.ticking import TickingClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


pytestmark = pytest.mark.finding(
    "hub-and-sdk",
    15,
    "errors did not pickle, jobs left things to the next, watchers fetched all pods, and other small things",
)


@pytest.fixture
async def stage() -> AsyncIterator[HubStage]:
    async with TickingClock() as clock, HubServer() as server, server.client(clock=clock) as client:
        stage = HubStage(server, client, clock)
        stage.job(nodes=2, spec=DISPATCHED)
        stage.place(pod(0, **WORKER), pod(1, **WORKER))
        yield stage


def asked(stage: HubStage, ending: str) -> int:
    return sum(
        "hub.trainplane.dev" in request.path and request.path.endswith(ending) for request in stage.server.requests
    )


async def test_pods_that_do_not_change_are_seldom_asked_for(stage: HubStage) -> None:
    async with asyncio.timeout(PATIENCE), aclosing(stage.backend.watch_job("a")) as changes:
        await anext(changes)
        watching = asyncio.ensure_future(anext(changes))
        await stage.until(lambda: asked(stage, "/trainjobs/a") >= 14)
        logged = {**stage.server.parts[""]["status"], "keptLogBytes": 4096}  # the training prints
        stage.server.parts[""] = {**stage.server.parts[""], "status": logged}
        await stage.until(lambda: asked(stage, "/trainjobs/a") >= 30)
        assert asked(stage, "/pods") <= 7, "once, then after 2, 4, 8, 16 and 30 s"
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def test_a_change_that_the_view_tells_is_seen_at_once(stage: HubStage) -> None:
    async with asyncio.timeout(PATIENCE), aclosing(stage.backend.watch_job("a")) as changes:
        await anext(changes)
        watching = asyncio.ensure_future(anext(changes))
        await stage.until(lambda: asked(stage, "/trainjobs/a") >= 12)
        pods = asked(stage, "/pods")
        views = asked(stage, "/trainjobs/a")
        stage.place(pod(0, **WORKER), pod(1, "Failed", state=ended(3), **WORKER), cluster="worker1")
        stage.server.parts[""]["status"]["readyPods"] = 1
        job = await watching
        assert [step.status for step in job.steps] == ["Running", "Failed"]
        assert asked(stage, "/pods") == pods + 1
        assert asked(stage, "/trainjobs/a") <= views + 2


async def test_a_change_that_nothing_tells_is_seen_too(stage: HubStage) -> None:
    async with asyncio.timeout(PATIENCE), aclosing(stage.backend.watch_job("a")) as changes:
        await anext(changes)
        stage.server.parts["pods"] = {"items": [pod(0, **WORKER), pod(1, "Failed", state=ended(3), **WORKER)]}
        job = await anext(changes)
        assert [step.status for step in job.steps] == ["Running", "Failed"]
