"""Who the workers are, read from mirrors, and from the API server what is not mirrored."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from tests.unit.hub.fakeworker import kubeconfig
from tests.unit.hub.test_workers import put_worker
from tests.unit.kube.io.support import until
from tests.unit.kube.ticking import TickingClock
from trainplane.hub.errors import WorkerCredentialsError
from trainplane.hub.watched import UNWATCHED_SECONDS, Watched
from trainplane.hub.workers import Workers
from trainplane.kube.errors import NotFoundError
from trainplane.kube.testing.faults import Refuse
from trainplane.kube.testing.server import FakeServer
from trainplane.resources import MULTIKUEUE_CLUSTERS, MULTIKUEUE_CONFIGS, SECRETS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainplane.kube.clock import Clock

PATIENCE = 60
"""Seconds for what must happen: for a bug, not for pacing."""


@pytest.fixture
async def hub() -> AsyncIterator[FakeServer]:
    async with FakeServer() as server:
        put_worker(server, "worker1", kubeconfig("https://127.0.0.1:1"))
        yield server


@pytest.fixture
async def clock() -> AsyncIterator[TickingClock]:
    async with TickingClock() as clock:
        yield clock


@asynccontextmanager
async def watching(hub: FakeServer, clock: Clock, *, synced: int = 3) -> AsyncIterator[Watched]:
    async with hub.client(clock=clock) as client:
        watched = Watched(client, clock, namespace="kueue-system")
        tasks = [asyncio.create_task(reflector.run()) for reflector in watched.reflectors]
        async with asyncio.timeout(PATIENCE):
            await until(lambda: sum(each.synced.is_set() for each in watched.reflectors) == synced)
        try:
            yield watched
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def test_what_is_mirrored_is_not_asked_for(hub: FakeServer, clock: TickingClock) -> None:
    hub.put(MULTIKUEUE_CONFIGS, {"metadata": {"name": "mk"}, "spec": {"clusters": ["worker1"]}})
    async with watching(hub, clock) as watched, Workers(watched) as workers:
        asked = len(hub.requests)
        assert await workers.names() == ("worker1",)
        assert (await workers.source("worker1")).text == kubeconfig("https://127.0.0.1:1")
        with pytest.raises(NotFoundError):
            await watched.get(MULTIKUEUE_CLUSTERS, "worker2")
        assert len(hub.requests) == asked
        put_worker(hub, "worker1", kubeconfig("https://127.0.0.1:2"))
        async with asyncio.timeout(PATIENCE):
            while (await workers.source("worker1")).text != kubeconfig("https://127.0.0.1:2"):  # noqa: ASYNC110 no event
                await asyncio.sleep(0)


async def test_of_other_secrets_only_the_names_of_their_keys_are_held(hub: FakeServer, clock: TickingClock) -> None:
    meta = {"name": "worker1-secret", "namespace": "kueue-system"}
    hub.put(SECRETS, {"metadata": meta, "data": {"tls.key": "S0VZ"}})
    hub.put(SECRETS, {"metadata": {**meta, "name": "odd"}, "data": ["S0VZ"]})
    async with watching(hub, clock) as watched, Workers(watched) as workers:
        assert (await watched.get(SECRETS, "worker1-secret", "kueue-system"))["data"] == {"tls.key": ""}
        assert (await watched.get(SECRETS, "odd", "kueue-system"))["data"] == {}
        with pytest.raises(WorkerCredentialsError, match=r"has no key 'kubeconfig' \(it has: tls.key\)"):
            await workers.source("worker1")


async def test_secrets_that_may_only_be_got_are_remembered_for_a_while(hub: FakeServer, clock: TickingClock) -> None:
    for verb in ("list", "watch"):
        hub.add_fault(Refuse(code=403, verb=verb, plural="secrets", times=None))
    async with watching(hub, clock, synced=2) as watched, Workers(watched) as workers:

        def got() -> int:
            return sum(asked.path.endswith("worker1-secret") for asked in hub.requests)

        for _ in range(5):
            await workers.source("worker1")
        assert got() == 1
        put_worker(hub, "worker1", kubeconfig("https://127.0.0.1:2"))
        await clock.advance(UNWATCHED_SECONDS)
        assert (await workers.source("worker1")).text == kubeconfig("https://127.0.0.1:2")
        assert got() == 2


async def test_what_is_not_listed_yet_is_asked_for(hub: FakeServer, clock: TickingClock) -> None:
    async with hub.client(clock=clock) as client:
        workers = Workers(Watched(client, clock, namespace="kueue-system"))
        assert await workers.names() == ("worker1",)
        assert (await workers.source("worker1")).place == "Secret kueue-system/worker1-secret"
