"""A follower before a fake API server whose kubelet rotates, restarts and breaks its streams."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.hub.kept import NAMESPACE_UID, parsed, pod
from tests.unit.hub.kubelet import SECOND, START
from tests.unit.kube.io.support import until
from tests.unit.kube.ticking import TickingClock
from trainplane.hub.logarchive.archive import Archive
from trainplane.hub.logarchive.lines import NOTE, text_of
from trainplane.hub.logarchive.retention import Retention
from trainplane.hub.logarchive.sink import JournalSink
from trainplane.hub.logarchive.streams import Streams
from trainplane.kube.backoff import Backoff
from trainplane.kube.logfollower import ENDED, GONE, Follower
from trainplane.kube.resource import PODS, Key
from trainplane.kube.testing.faults import Refuse
from trainplane.kube.testing.server import FakeServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from trainplane.hub.logarchive.keptjob import KeptJob, KeptPod
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.testing.podlogs import ContainerLogs

NAME = "x-node-0-0-abcde"
KEY = Key("team", NAME)
PATIENCE = 60
"""Seconds for what must happen: for a bug, not for pacing."""


class Stage:
    """A pod on a fake server, its log, and one follower of it."""

    def __init__(self, server: FakeServer, client: Client, clock: Clock, folder: Path) -> None:
        self.server = server
        self.client = client
        self.clock = clock
        self.archive = Archive(folder, Retention(), clock)
        self.job: KeptJob = self.archive.admit("job-1", "team", "x", NAMESPACE_UID)
        self.logs: ContainerLogs = server.pods.containers[KEY, "node"]
        self.printed: list[bytes] = []
        self.is_whole = True
        self.streams = Streams("worker worker1", 4, 4)
        self.set(state="running")

    def set(self, **status: Any) -> None:
        """Give the pod a status, on the server and in the archive, as a mirror would."""
        tree = pod(NAME, **status)
        self.server.put(PODS, tree)
        self.kept: KeptPod = self.archive.put_pod(self.job, "worker1", parsed(tree))

    def report(self, **status: Any) -> None:
        """Give the pod a status on the server alone: the mirror has not heard of it yet."""
        self.server.put(PODS, pod(NAME, **status))

    def print(self, count: int, *, every: int = SECOND // 20) -> None:
        for _ in range(count):
            text = f"line {len(self.printed)}".encode()
            self.logs.write(START + len(self.printed) * every, text)
            self.printed.append(text)

    def texts(self, run: int = 0) -> list[bytes]:
        """Return what is kept of a run."""
        data = self.kept.journal("node", run).read(0, 1 << 30)[0]
        return [text_of(line) for line in data.split(b"\n")[:-1]]

    def follower(self) -> Follower[JournalSink]:
        return Follower(
            JournalSink(self.archive, self.job, self.kept, "node"),
            KEY,
            "node",
            lambda: self.client,
            self.clock,
            lambda: self.streams,
            backoff=Backoff(base=0.01, cap=0.05),
            random=Random(1),  # noqa: S311 jitter is no secret
        )

    @asynccontextmanager
    async def following(self) -> AsyncIterator[Follower[JournalSink]]:
        follower = self.follower()
        task = asyncio.create_task(follower.run())
        try:
            yield follower
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until_kept(self, run: int = 0) -> None:
        async with asyncio.timeout(PATIENCE):
            await until(lambda: len(self.texts(run)) >= len(self.printed))

    async def until_open(self, streams: int = 1) -> None:
        async with asyncio.timeout(PATIENCE):
            await until(lambda: self.logs.opened >= streams and self.logs.readers > 0)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with TickingClock() as clock, FakeServer() as server, server.client(clock=clock) as client:
        made = Stage(server, client, clock, tmp_path)
        yield made
        made.archive.close()


async def test_lines_are_kept_as_they_are_printed_and_the_end_is_noted(stage: Stage) -> None:
    stage.print(5)
    async with stage.following() as follower:
        await stage.until_kept()
        stage.print(5)
        await stage.until_kept()
        stage.set(state="terminated")
        stage.logs.end()
        async with asyncio.timeout(PATIENCE):
            await until(lambda: stage.kept.journal("node", 0).ended == ENDED)
        assert follower.problem is None
    assert stage.texts() == stage.printed


async def test_another_follower_goes_on_where_one_was_killed(stage: Stage) -> None:
    for _ in range(5):
        stage.print(17)
        async with stage.following():
            await stage.until_kept()
            stage.print(4)
    async with stage.following():
        await stage.until_kept()
    assert stage.texts() == stage.printed


async def test_each_run_has_its_journal_and_what_was_missed_of_the_former_is_fetched(stage: Stage) -> None:
    stage.print(10)
    async with stage.following():
        await stage.until_kept()
        stage.logs.breach("reset")
        stage.print(3)
        first, stage.printed = stage.printed, []
        stage.logs.restart()
        stage.report(restarts=1)
        for number in range(7):
            stage.logs.write(START + 100 * SECOND + number, b"second %d" % number)
        async with asyncio.timeout(PATIENCE):
            await until(lambda: len(stage.texts(1)) == 7)
        assert stage.texts(0) == first
        assert stage.texts(1) == [b"second %d" % number for number in range(7)]
        assert stage.kept.journal("node", 0).ended == ENDED
        assert stage.kept.journal("node", 1).ended is None


async def test_a_former_run_that_the_kubelet_removed_is_done_without(stage: Stage) -> None:
    stage.set(restarts=3)
    stage.print(2)
    async with stage.following():
        await stage.until_kept(3)
        assert stage.kept.journal("node", 2).ended == GONE


async def test_a_restart_that_even_the_server_does_not_tell_yet_is_put_right(stage: Stage) -> None:
    stage.logs.restart()
    stage.print(10)
    async with stage.following():
        await stage.until_kept(0)
        stage.set(restarts=1)
        stage.logs.breach("reset")
        stage.print(10)
        await stage.until_kept(1)
        assert (stage.texts(0), stage.texts(1)) == ([], stage.printed)
        assert stage.kept.journal("node", 0).ended == ENDED
    async with stage.following():
        stage.print(3)
        await stage.until_kept(1)
    assert stage.texts(1) == stage.printed


async def test_a_log_rotated_meanwhile_says_so(stage: Stage) -> None:
    stage.print(40)
    async with stage.following():
        await stage.until_kept()
        stage.logs.breach("reset")
        stage.print(100)
        stage.logs.rotate(keep=30)
        async with asyncio.timeout(PATIENCE):
            await until(lambda: len(stage.texts()) == 40 + 1 + 30)
    kept = stage.texts()
    assert kept[:40] == stage.printed[:40]
    assert kept[40].startswith(b"[trainplane] lines may be missing here")
    assert kept[41:] == stage.printed[-30:]
    lines = stage.kept.journal("node", 0).read(0, 1 << 30)[0].split(b"\n")
    assert [line[:1] == NOTE for line in lines].index(True) == 40
    async with stage.following():
        stage.print(5)
        async with asyncio.timeout(PATIENCE):
            await until(lambda: stage.texts()[-5:] == stage.printed[-5:])
    assert len(stage.texts()) == 40 + 1 + 35


async def test_a_pod_that_is_gone_ends_the_follower(stage: Stage) -> None:
    stage.print(5)
    follower = stage.follower()
    task = asyncio.create_task(follower.run())
    await stage.until_kept()
    stage.server.remove(PODS, NAME, "team")
    stage.logs.end()
    await asyncio.wait_for(task, PATIENCE)
    assert stage.texts() == stage.printed
    assert stage.kept.journal("node", 0).ended == GONE


async def test_a_worker_that_refuses_is_not_asked_over_and_over(stage: Stage) -> None:
    stage.server.add_fault(Refuse(code=403, times=None))
    async with stage.following() as follower:
        async with asyncio.timeout(PATIENCE):
            await until(lambda: follower.problem is not None)
        asked = len(stage.server.requests)
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(stage.server.requests) == asked
        assert "403" in str(follower.problem)


async def test_a_log_without_a_place_is_read_by_turns_and_says_so(stage: Stage) -> None:
    stage.streams = Streams("worker worker1", 1, 1)
    stage.print(3)
    with stage.streams.place() as has_place:
        assert has_place
        async with stage.following() as follower:
            await stage.until_kept()
            assert "1 logs of worker worker1 are followed already" in str(follower.problem)
            stage.print(3)
            await stage.until_kept()
    assert stage.streams.refused >= 2
