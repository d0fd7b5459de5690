"""The authorities are in the namespaces of TrainJobs before their pods, and new ones reach those that run."""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.operator.objects import NAMESPACE, train_job
from tests.unit.operator.world import World
from trainplane.kube.errors import UnavailableError
from trainplane.kube.pki import CertificatePolicy, renew
from trainplane.operator.progress.authority import BELIEVED_SECONDS, Authority
from trainplane.render.pipeline import Pipeline
from trainplane.render.plugins.trainjobstatus import TrainJobStatus
from trainplane.resources import CONFIG_MAPS, TRAIN_JOBS

START = datetime(2026, 1, 1, tzinfo=UTC)
NAME = "kubeflow-trainer-status-ca"
WRITE = f"apply configmaps {NAME}"


class Scene:
    def __init__(self) -> None:
        self.pem = b""
        self.leads = True
        self.world = World()
        self.restart()

    def restart(self) -> None:
        """Begin anew, as a new leader does."""
        before = self.world
        pipeline = Pipeline.default(also=[TrainJobStatus("https://s")])
        self.world = World(before.storage, before.clock, pipeline=pipeline, prepare=self._ensure).with_runtime()
        self.world.sync()
        self.authority = Authority(
            lambda: self.pem, lambda: self.leads, self.world.writer, self.world.stores, self.world.clock
        )

    async def _ensure(self, namespace: str) -> None:
        await self.authority.ensure(namespace)

    async def begin(self, name: str, **spec: Any) -> list[str]:
        """Begin a TrainJob, and return what was written to ConfigMaps of authorities."""
        self.world.put(TRAIN_JOBS, train_job(name, **spec))
        await self.world.settle(name)
        return [one for one in self.world.take_writes() if NAME in one]

    def trusted(self) -> bytes:
        found = self.world.find(CONFIG_MAPS, NAME)
        return b"" if found is None else bytes(found["data"]["ca.crt"], "ascii")

    async def look(self, seconds: float = 6) -> list[str]:
        """Let it look for a while, and return what was written."""
        task = asyncio.create_task(self.authority.run())
        await self.world.clock.advance(seconds)
        task.cancel()
        self.world.sync()
        return self.world.take_writes()


def authority(at: datetime, before: Any = None) -> Any:
    return renew(before, CertificatePolicy(("s",)), at)[0]


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_a_namespace_is_written_to_once_for_all_its_trainjobs(scene: Scene) -> None:
    scene.pem = authority(START).ca_crt
    assert await scene.begin("first") == [WRITE]
    assert await scene.begin("second") == []
    assert scene.trusted() == scene.pem
    assert await scene.look() == []


async def test_it_is_there_before_the_jobset(scene: Scene) -> None:
    scene.pem = authority(START).ca_crt
    scene.world.put(TRAIN_JOBS, train_job("job"))
    await scene.world.settle("job")
    writes = scene.world.take_writes()
    assert writes.index(WRITE) < writes.index("apply jobsets job")


async def test_what_somebody_broke_is_mended_in_time(scene: Scene) -> None:
    scene.pem = authority(START).ca_crt
    await scene.begin("first")
    found = scene.world.find(CONFIG_MAPS, NAME)
    assert found is not None
    scene.world.put(CONFIG_MAPS, {**found, "data": {"ca.crt": "theirs"}})
    await scene.world.clock.advance(BELIEVED_SECONDS)
    assert await scene.begin("second") == [WRITE]
    assert scene.trusted() == scene.pem


async def test_a_new_authority_reaches_what_runs(scene: Scene) -> None:
    old = authority(START - timedelta(days=3600))
    scene.pem = old.ca_crt
    await scene.begin("runs")
    new = authority(START, old)
    assert new.ca_crt != old.ca_crt
    scene.pem = new.ca_crt
    assert await scene.look() == [WRITE]
    assert scene.trusted() == new.ca_crt
    assert old.ca_crt.strip() in new.ca_crt, "the certificate of now is trusted on"


async def test_a_new_leader_writes_once_to_each_namespace_where_trainjobs_run(scene: Scene) -> None:
    scene.pem = authority(START).ca_crt
    for number in range(3):
        await scene.begin(f"runs-{number}")
    scene.restart()
    assert await scene.look(60) == [WRITE]


async def test_namespaces_where_none_runs_or_none_reports_are_left_alone(scene: Scene) -> None:
    scene.pem = authority(START).ca_crt
    await scene.begin("over")
    scene.world.jobset_says(conditions=({"type": "Completed", "status": "True", "reason": "x"},), name="over")
    plain = World(scene.world.storage, scene.world.clock)
    plain.put(TRAIN_JOBS, train_job("plain"))
    await plain.settle("plain")
    scene.restart()
    assert await scene.look() == []


async def test_trainjobs_that_began_before_any_was_known_get_it(scene: Scene) -> None:
    assert await scene.begin("early") == []
    scene.pem = authority(START - timedelta(days=300)).ca_crt
    assert await scene.look() == [WRITE]
    assert scene.trusted() == scene.pem


async def test_training_does_not_wait_for_it(scene: Scene) -> None:
    scene.pem = authority(START).ca_crt
    scene.world.client.refuse["apply configmaps"] = deque([UnavailableError("away")])
    await scene.begin("job")
    assert scene.trusted() == b""
    assert scene.world.job_set("job") is not None
    assert await scene.look() == [WRITE]


async def test_only_the_leader_brings_it(scene: Scene) -> None:
    await scene.begin("runs")
    scene.pem = authority(START).ca_crt
    scene.leads = False
    assert await scene.look() == []
    scene.leads = True
    assert await scene.look(60) == [WRITE]
    assert scene.trusted() == scene.pem
    assert scene.world.find(CONFIG_MAPS, NAME)["metadata"]["namespace"] == NAMESPACE  # type: ignore[index]
