"""What broke the hub view under fire: workers that are lost, renamed, removed, hung, or have a clock of their own."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from tests.unit.hub.hubstage import PATIENCE, QUICK, ROOT, HubStage
from tests.unit.hub.kept import NAMESPACE_UID, numbered, parsed, pod
from trainplane.hub.kept.archive import Archive
from trainplane.hub.kept.retention import Retention
from trainplane.hub.served import logs
from trainplane.hub.served.logquery import LogQuery
from trainplane.kube.testing.clock import FakeClock
from trainplane.kube.testing.server import FakeServer

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
        await stage.until(lambda: "worker2" in stage.keeper.mirrors)
        yield server
        del stage.workers.clients["worker2"]
        await stage.until(lambda: "worker2" not in stage.keeper.mirrors)


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
    job = archive.admit("job-1", "team", "x", NAMESPACE_UID)
    for name, cluster, created in (("old", "worker1", "05:05:00"), ("new", "worker2", "05:02:00")):
        tree = pod(f"x-node-0-0-{name}", created=f"2026-11-15T{created}Z")
        kept = archive.put_pod(job, cluster, parsed(tree))
        archive.append(job, kept.journal("node", 0), numbered(1, text=name))
        await clock.advance(60)
    archive.close()
    archive = Archive(tmp_path / "data", Retention(), clock)  # what was seen first is not forgotten
    found = archive.job("job-1")
    assert found is not None
    assert b"".join(logs.read(found, LogQuery(), 0)) == b"new 0\n"
    assert b"".join(logs.read(found, LogQuery(previous=True), 0)) == b"old 0\n"
    archive.close()
