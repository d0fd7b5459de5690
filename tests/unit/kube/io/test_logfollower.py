"""A follower of a log before a fake API server whose kubelet rotates, restarts and breaks its streams."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.kube.io.followed import PATIENCE, Followed
from tests.unit.kube.io.support import until
from tests.unit.kube.ticking import TickingClock
from trainplane.kube import containerlogs, logfollower
from trainplane.kube.backoff import Backoff
from trainplane.kube.containerlogs import nanoseconds, text_of
from trainplane.kube.errors import ForbiddenError, KubeError, NotFoundError
from trainplane.kube.logfollower import ENDED, ContainerState, Follower, Sink, Unbounded
from trainplane.kube.resource import PODS, Key
from trainplane.kube.testing.faults import Refuse
from trainplane.kube.testing.server import FakeServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractContextManager

    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock

NAME = "x-node-0-0-abcde"
KEY = Key("team", NAME)
SECOND = 1_000_000_000
START = 1_800_000_000 * SECOND


def pod(*, uid: str = "1", restarts: int = 0, state: str = "running") -> dict[str, Any]:
    return {
        "metadata": {"name": NAME, "namespace": "team", "uid": uid},
        "status": {"containerStatuses": [{"name": "node", "restartCount": restarts, "state": {state: {}}}]},
    }


def state_of(tree: dict[str, Any]) -> ContainerState:
    (status,) = tree["status"]["containerStatuses"]
    states = {*status["state"]}
    return ContainerState(
        None if "waiting" in states else status["restartCount"],
        is_running="running" in states,
        is_last="terminated" in states,
    )


@dataclass
class Lines:
    """A run in memory."""

    ended: str | None = None
    lines: list[bytes] = field(default_factory=list)
    gaps: list[int] = field(default_factory=list)

    @property
    def end(self) -> int:
        return len(self.lines)

    def newest(self) -> int | None:
        return max((nanoseconds(line) or 0 for line in self.lines), default=None)

    def since(self, moment: int) -> list[bytes]:
        return [line for line in self.lines if (nanoseconds(line) or 0) >= moment]


class Memory(Sink):
    """Keeps lines in memory."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.told = told
        self.runs: dict[int, Lines] = {}
        self.closed = False

    def state(self) -> ContainerState:
        return state_of(self.told)

    async def look(self, client: Client) -> ContainerState:
        tree: dict[str, Any] = await client.get(PODS, NAME, "team")
        if tree["metadata"]["uid"] != self.told["metadata"]["uid"]:
            raise NotFoundError("another")
        self.told = tree
        return state_of(tree)

    def kept(self, number: int) -> Lines:
        return self.runs.setdefault(number, Lines())

    def adopt(self, number: int, first: bytes) -> bool:
        former = self.runs.get(number - 1)
        if former is None or former.lines[:1] != [first]:
            return False
        self.runs[number], self.runs[number - 1] = Lines(None, former.lines), Lines(ENDED)
        return True

    async def put(self, number: int, lines: Sequence[bytes], *, gap: bool) -> None:
        run = self.kept(number)
        if gap:
            run.gaps.append(run.end)
        run.lines += lines

    def over(self, number: int, reason: str) -> None:
        self.kept(number).ended = reason

    def failed(self, error: Exception, failures: int) -> float | None:  # noqa: ARG002 a Sink's
        if not isinstance(error, KubeError) or isinstance(error, ForbiddenError):
            raise error
        return 0.0

    async def close(self, half: tuple[int, bytes] | None) -> None:
        if half is not None:
            self.kept(half[0]).lines.append(half[1])
        self.closed = True


class NoPlace(Unbounded):
    """No log can be followed."""

    shortage = "read by turns"

    def place(self) -> AbstractContextManager[bool]:
        return contextlib.nullcontext(enter_result=False)


class Stage(Followed[Memory]):
    """A pod on a fake server, its log, and one follower of it."""

    def __init__(self, server: FakeServer, client: Client, clock: Clock) -> None:
        super().__init__(server.pods.containers[KEY, "node"])
        self.server = server
        self.client = client
        self.clock = clock
        self.sink = Memory(pod())
        self.set()

    def set(self, **status: Any) -> None:
        """Give the pod a status, on the server and in the sink, as a mirror would."""
        self.report(**status)
        self.sink.told = pod(**status)

    def report(self, **status: Any) -> None:
        """Give the pod a status on the server alone: the mirror has not heard of it yet."""
        self.server.put(PODS, pod(**status))

    def texts(self, run: int = 0) -> list[bytes]:
        """Return what is kept of a run."""
        return [text_of(line) for line in self.sink.kept(run).lines]

    def follower(self, **others: Any) -> Follower[Memory]:
        return Follower(
            self.sink,
            KEY,
            "node",
            lambda: self.client,
            self.clock,
            backoff=Backoff(base=0.01, cap=0.05),
            random=Random(1),  # noqa: S311 jitter is no secret
            **others,
        )


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with TickingClock() as clock, FakeServer() as server, server.client(clock=clock) as client:
        yield Stage(server, client, clock)


@pytest.mark.parametrize("breach", ["mid-line", "reset", "clean"])
async def test_broken_streams_go_on_without_gap_or_repeat(stage: Stage, breach: Any) -> None:
    async with stage.following():
        for turn in range(1, 9):
            await stage.until_open(turn)
            stage.print(25)
            if turn % 2:
                await stage.until_kept()
            stage.logs.breach(breach)
            stage.print(3)
        await stage.until_kept()
    assert stage.texts() == stage.printed


async def test_a_restart_that_the_status_does_not_tell_yet_is_not_taken_for_the_same_run(stage: Stage) -> None:
    stage.print(10)
    async with stage.following():
        await stage.until_kept()
        stage.logs.breach("reset")
        stage.logs.restart()
        for number in range(3):
            stage.logs.write(START + 100 * SECOND + number, b"second %d" % number)
        opened = stage.logs.opened
        async with asyncio.timeout(PATIENCE):
            await until(lambda: stage.logs.opened > opened)
        stage.set(restarts=1)
        async with asyncio.timeout(PATIENCE):
            await until(lambda: len(stage.texts(1)) == 3)
        assert stage.texts(0) == stage.printed


async def test_a_mirror_that_lags_does_not_mix_runs_up(stage: Stage) -> None:
    stage.print(4)
    stage.logs.restart()
    stage.report(restarts=1)
    stage.logs.write(START + 100 * SECOND, b"second")
    async with stage.following():
        async with asyncio.timeout(PATIENCE):
            await until(lambda: stage.texts(1) == [b"second"])
        assert stage.texts(0) == stage.printed


async def test_a_follower_that_comes_late_fetches_the_former_run_too(stage: Stage) -> None:
    stage.print(4)
    stage.logs.restart()
    stage.set(restarts=1)
    stage.logs.write(START + 100 * SECOND, b"second")
    async with stage.following():
        async with asyncio.timeout(PATIENCE):
            await until(lambda: stage.texts(1) == [b"second"])
        assert stage.texts(0) == stage.printed


async def test_a_pod_that_was_deleted_and_made_again_is_another(stage: Stage) -> None:
    stage.print(5)
    task = asyncio.create_task(stage.follower().run())
    await stage.until_kept()
    stage.server.remove(PODS, NAME, "team")
    stage.server.put(PODS, pod(uid="another"))
    stage.logs.breach("clean")
    await asyncio.wait_for(task, PATIENCE)
    assert stage.sink.kept(0).ended is None


async def test_half_a_line_waits_for_its_end_unless_the_pod_is_gone(stage: Stage) -> None:
    del stage.server.pods.containers[KEY, "node"]
    stage.server.pods.write_log(KEY, b"2026-11-15T05:11:08.5Z first\n2026-11-15T05:11:08.6Z half")
    stage.server.pods.finish(KEY)
    follower = stage.follower()
    task = asyncio.create_task(follower.run())
    async with asyncio.timeout(PATIENCE):
        await until(lambda: stage.texts() == [b"first"])
    assert not stage.sink.kept(0).ended, "the status says that it runs: more may come"
    stage.server.remove(PODS, NAME, "team")
    await asyncio.wait_for(task, PATIENCE)
    assert stage.texts() == [b"first", b"half"]


async def test_remarks_of_the_kubelet_are_not_the_containers(stage: Stage) -> None:
    del stage.server.pods.containers[KEY, "node"]
    text = b"failed to watch\n2026-11-15T05:11:08.5Z first\nunable to retrieve container logs for containerd://ab"
    stage.server.pods.write_log(KEY, text)
    stage.server.pods.finish(KEY)
    stage.set(state="terminated")
    async with stage.following():
        async with asyncio.timeout(PATIENCE):
            await until(lambda: stage.sink.kept(0).ended == ENDED)
    assert stage.texts() == [b"first"]


async def test_a_container_that_has_not_begun_is_waited_for(stage: Stage) -> None:
    stage.set(state="waiting")
    async with stage.following() as follower:
        async with asyncio.timeout(PATIENCE):
            await follower.current.wait()
        assert stage.logs.opened == 0
        stage.set(state="running")
        stage.print(3)
        follower.update()
        await stage.until_kept()


async def test_a_last_line_without_newline_is_kept(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.print(2)
    stage.set(state="terminated")
    stage.logs.end()
    bare = stage.server.pods.logs[KEY]
    del stage.server.pods.containers[KEY, "node"]
    bare.append(b"2026-11-15T05:11:08.5Z first\n2026-11-15T05:11:08.6Z no newline")
    async with stage.following():
        async with asyncio.timeout(PATIENCE):
            await until(lambda: stage.sink.kept(0).ended == ENDED)
    assert stage.texts() == [b"first", b"no newline"]


async def test_half_a_line_that_is_read_by_turns_is_kept_when_it_is_whole(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a container that runs has printed last may still go on."""
    read = containerlogs.read

    async def halved(*place: Any, **query: Any) -> AsyncIterator[containerlogs.Batch]:
        held = b""
        async for batch in read(*place, **query):
            cut = bool(batch.lines) and not stage.is_whole
            held = batch.lines[-1] if cut else held
            yield batch._replace(lines=batch.lines[:-1]) if cut else batch
        if held:
            yield containerlogs.Batch([], held[:-3])

    monkeypatch.setattr(containerlogs, "read", halved)
    stage.is_whole = False
    stage.print(3)
    async with stage.following(places=NoPlace):
        async with asyncio.timeout(PATIENCE):
            await until(lambda: stage.texts() == stage.printed[:2])
        stage.is_whole = True
        await stage.until_kept()


async def test_a_server_that_is_away_is_waited_for(stage: Stage) -> None:
    async with stage.following() as follower:
        stage.print(10)
        await stage.until_kept()
        await stage.server.stop()
        stage.print(10)
        async with asyncio.timeout(PATIENCE):
            await until(lambda: follower.problem is not None)
        await stage.server.start()
        await stage.until_kept()
        assert follower.problem is None
    assert stage.texts() == stage.printed


async def test_a_gap_is_told_once_the_status_has_said_twice_that_it_is_the_same_run(stage: Stage) -> None:
    stage.print(40)
    async with stage.following():
        await stage.until_kept()
        stage.logs.breach("reset")
        stage.print(100)
        stage.logs.rotate(keep=30)
        async with asyncio.timeout(PATIENCE):
            await until(lambda: len(stage.texts()) == 70)
    assert stage.texts() == [*stage.printed[:40], *stage.printed[-30:]]
    assert stage.sink.kept(0).gaps == [40]


async def test_a_run_that_the_status_told_late_is_moved_to_its_number(stage: Stage) -> None:
    stage.logs.restart()
    stage.print(10)
    async with stage.following():
        await stage.until_kept(0)
        stage.set(restarts=1)
        stage.logs.breach("reset")
        stage.print(10)
        await stage.until_kept(1)
    assert (stage.texts(0), stage.texts(1)) == ([], stage.printed)


async def test_without_follow_what_there_is_is_read_once(stage: Stage) -> None:
    stage.print(4)
    stage.logs.restart()
    stage.set(restarts=1)
    stage.logs.write(START + 100 * SECOND, b"second")
    await asyncio.wait_for(stage.follower(follow=False).run(), PATIENCE)
    assert (stage.texts(0), stage.texts(1)) == (stage.printed, [b"second"])
    assert not [each for each in stage.server.requests if not each.path.endswith("/log")], "the pod was told of"


async def test_a_tail_is_the_present_runs(stage: Stage) -> None:
    stage.print(4)
    stage.logs.restart()
    stage.set(restarts=1)
    for number in range(5):
        stage.logs.write(START + 100 * SECOND + number, b"second %d" % number)
    await asyncio.wait_for(stage.follower(follow=False, tail=2).run(), PATIENCE)
    assert (stage.texts(0), len(stage.texts(1))) == ([], 5), "the server cuts it, and this one does not"
    (asked,) = stage.server.requests
    assert asked.query["tailLines"] == "2"


async def test_what_began_since_the_last_word_is_read_before_it_is_over(stage: Stage) -> None:
    stage.print(3)
    stage.set(state="waiting")
    follower = stage.follower()
    task = asyncio.create_task(follower.run())
    async with asyncio.timeout(PATIENCE):
        await follower.current.wait()
    stage.report(state="terminated")
    stage.logs.end()
    follower.finish()
    await asyncio.wait_for(task, PATIENCE)
    assert stage.texts() == stage.printed
    assert stage.sink.closed


async def test_a_run_that_began_since_the_last_word_is_read_before_it_is_over(stage: Stage) -> None:
    stage.print(3)
    stage.set(state="terminated")
    stage.logs.end()
    stage.sink.told = pod(state="terminated")
    stage.sink.kept(0).ended = ENDED
    stage.sink.kept(0).lines = []
    stage.logs.restart()
    stage.logs.write(START + 100 * SECOND, b"second")
    stage.report(restarts=1, state="terminated")
    follower = stage.follower()
    follower.finish()
    await asyncio.wait_for(follower.run(), PATIENCE)
    assert stage.texts(1) == [b"second"]


async def test_what_the_sink_does_not_wait_for_is_raised(stage: Stage) -> None:
    stage.server.add_fault(Refuse(code=403, times=None))
    with pytest.raises(ForbiddenError):
        await asyncio.wait_for(stage.follower().run(), PATIENCE)


async def test_a_stream_that_does_not_end_with_its_pod_is_given_up_when_nothing_comes_any_more(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logfollower, "LEFT_SECONDS", 1.0)
    follower = stage.follower()
    task = asyncio.create_task(follower.run())
    await stage.until_open()
    follower.leave()
    for _ in range(4):  # each line within the time of the one before, all of them longer than it
        await asyncio.sleep(0.3)
        stage.print(1)
    await asyncio.wait_for(task, PATIENCE)
    assert stage.texts() == stage.printed
    assert stage.sink.closed
