"""New authorities reach the TrainJobs that run, and nobody else."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.operator.objects import train_job
from tests.unit.operator.world import World
from trainplane.kube.pki import BACKDATE, CertificatePolicy, renew
from trainplane.operator.progress.authority import Authority
from trainplane.render.pipeline import Pipeline
from trainplane.render.plugins.trainjobstatus import TrainJobStatus
from trainplane.resources import CONFIG_MAPS, TRAIN_JOBS

START = datetime(2026, 1, 1, tzinfo=UTC)


class Scene:
    def __init__(self) -> None:
        self.pem = b""
        self.leads = True
        self.world = World()
        self.authority = self.restart()

    def restart(self) -> Authority:
        world = self.world
        self.authority = Authority(lambda: self.pem, lambda: self.leads, world.writer, world.stores, world.clock)
        plugin = TrainJobStatus("https://s", self.authority.text)
        self.world = World(world.storage, world.clock, pipeline=Pipeline.default(also=[plugin])).with_runtime()
        self.authority._stores, self.authority._writer = self.world.stores, self.world.writer
        self.world.sync()
        return self.authority

    async def begin(self, name: str, **spec: Any) -> None:
        self.world.put(TRAIN_JOBS, train_job(name, **spec))
        await self.world.settle(name)
        jobset = self.world.job_set(name)
        assert jobset is not None
        created = f"{self.world.clock.now():%Y-%m-%dT%H:%M:%SZ}"
        jobset = {**jobset, "metadata": {**jobset["metadata"], "creationTimestamp": created}}
        self.world.put(self.world.stores.job_sets.resource, jobset)
        self.world.sync()
        self.world.client.asked.clear()

    def trusted(self, name: str) -> bytes:
        found = self.world.find(CONFIG_MAPS, f"{name}-tls-config")
        assert found is not None
        return bytes(found["data"]["ca.crt"], "ascii")

    async def tick(self) -> list[str]:
        """Let it look once, and return what was written."""
        text = self.authority._text = self.pem.decode()
        if text and self.leads:
            task = asyncio.create_task(self.authority.bring(text))
            while not task.done():
                await self.world.clock.advance(0.05)
            await task
        self.world.sync()
        return self.world.take_writes()


def authority(at: datetime, before: Any = None) -> Any:
    return renew(before, CertificatePolicy(("s",)), at)[0]


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_a_new_authority_reaches_what_runs(scene: Scene) -> None:
    old = authority(START - timedelta(days=3600))
    scene.pem = old.ca_crt
    scene.restart()
    await scene.begin("runs")
    assert scene.trusted("runs") == old.ca_crt
    new = authority(START, old)
    assert new.ca_crt != old.ca_crt
    scene.pem = new.ca_crt
    assert await scene.tick() == ["patch configmaps runs-tls-config"]
    assert scene.trusted("runs") == new.ca_crt
    assert old.ca_crt.strip() in new.ca_crt, "the certificate of now is trusted on"


async def test_a_new_leader_writes_nothing_where_there_was_no_new_authority(scene: Scene) -> None:
    scene.pem = authority(START - BACKDATE - timedelta(days=30)).ca_crt
    scene.restart()
    for number in range(3):
        await scene.begin(f"runs-{number}")
    scene.restart()
    assert await scene.tick() == []


async def test_what_is_over_or_was_made_without_is_left_alone(scene: Scene) -> None:
    scene.pem = authority(START).ca_crt
    scene.restart()
    await scene.begin("over")
    scene.world.jobset_says(conditions=({"type": "Completed", "status": "True", "reason": "x"},), name="over")
    plain = World(scene.world.storage, scene.world.clock)
    plain.put(TRAIN_JOBS, train_job("plain"))
    await plain.settle("plain")
    scene.world.sync()
    scene.world.client.asked.clear()
    assert await scene.tick() == []


async def test_trainjobs_that_began_before_any_was_known_get_it(scene: Scene) -> None:
    await scene.begin("early")
    assert scene.trusted("early") == b""
    scene.pem = authority(START - timedelta(days=300)).ca_crt
    assert await scene.tick() == ["patch configmaps early-tls-config"]
    assert scene.trusted("early") == scene.pem


async def test_it_runs_where_it_leads_and_tries_again(scene: Scene) -> None:
    scene.pem = authority(START).ca_crt
    scene.leads = False
    scene.restart()
    await scene.begin("runs")
    task = asyncio.create_task(scene.authority.run())
    await scene.world.clock.advance(6)
    assert scene.world.client.writes == []
    scene.leads = True
    await scene.world.clock.advance(6)
    assert scene.world.client.writes == ["patch configmaps runs-tls-config"]
    await scene.world.clock.advance(60)
    assert len(scene.world.client.writes) == 1
    task.cancel()
