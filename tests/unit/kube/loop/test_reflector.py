# A double has the signature of what it stands for.
# ruff: noqa: ARG002
from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.kube.loop.mirror import Mirror
from tests.unit.kube.loop.model_cluster import Behaviour, ModelCluster
from tests.unit.kube.loop.objects import THINGS, seeded
from trainplane.kube import pace
from trainplane.kube.errors import (
    ForbiddenError,
    GoneError,
    InvalidError,
    ServerTimeoutError,
    TooManyRequestsError,
    TransportError,
)
from trainplane.kube.observer import Unobserved
from trainplane.kube.reflector import Reflector, ReflectorSettings
from trainplane.kube.resource import Key, Resource
from trainplane.kube.store import Change, Store
from trainplane.kube.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainplane.kube.codec import WatchEvent

A = Key("default", "a")
B = Key("default", "b")


class Heard(Unobserved):
    def __init__(self) -> None:
        self.lists: list[tuple[int, float]] = []
        self.failures: list[str] = []
        self.handlers: list[str] = []

    def listed(self, resource: Resource, *, objects: int, seconds: float) -> None:
        self.lists.append((objects, seconds))

    def stream_failed(self, resource: Resource, error: Exception) -> None:
        self.failures.append(str(error))

    def handler_failed(self, resource: Resource, error: Exception) -> None:
        self.handlers.append(str(error))


class Scene:
    """A reflector at work on a model cluster."""

    def __init__(self, cluster: ModelCluster, **options: Any) -> None:
        self.cluster = cluster
        self.clock = FakeClock()
        self.store = Store(THINGS)
        self.mirror = Mirror()
        self.observer = Heard()
        options.setdefault("settings", ReflectorSettings(page_size=2))
        self.reflector = Reflector(
            cluster,
            THINGS,
            self.store,
            [*options.pop("handlers", ()), self.mirror],
            self.clock,
            observer=self.observer,
            random=seeded(1),
            **options,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Scene]:
        task = asyncio.create_task(self.reflector.run())
        await self.clock.settle()
        yield self
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert self.cluster.watchers == 0, "every stream was closed"
        assert self.clock.sleepers == 0

    @property
    def relists(self) -> int:
        return sum(kind in {"list", "stream"} for kind, _ in self.cluster.asked) - 1

    async def expect_equal(self) -> None:
        await self.clock.settle()
        assert {key: self.store.resource_version(key) for key in self.store} == {
            key: int(obj["metadata"]["resourceVersion"]) for key, obj in self.cluster.objects.items()
        }
        assert self.mirror.of(self.store)


def cluster_of(names: str, **options: Any) -> ModelCluster:
    cluster = ModelCluster(**options)
    for name in names:
        cluster.put(name)
    return cluster


async def test_a_list_is_streamed_and_then_followed() -> None:
    async with Scene(cluster_of("ab")).running() as scene:
        assert scene.reflector.synced.is_set()
        assert scene.mirror.heard == [("ADDED", "a", True), ("ADDED", "b", True)]
        scene.cluster.put("a", 1)
        scene.cluster.put("c")
        scene.cluster.delete("b")
        await scene.expect_equal()
        assert scene.mirror.heard[2:] == [("MODIFIED", "a", False), ("ADDED", "c", False), ("DELETED", "b", False)]
        assert scene.cluster.asked == [("stream", None)], "one request does it all"
        assert scene.store.observed == scene.cluster.revision


async def test_an_empty_list_is_a_list() -> None:
    async with Scene(cluster_of("")).running() as scene:
        assert scene.reflector.synced.is_set()
        assert scene.observer.lists == [(0, 0.0)]


@pytest.mark.parametrize("names", ["", "a", "ab", "abcde"])
async def test_where_streaming_is_refused_pages_are_listed(names: str) -> None:
    async with Scene(cluster_of(names, streams_lists=False)).running() as scene:
        assert scene.reflector.synced.is_set()
        await scene.expect_equal()
        scene.cluster.put("z")
        await scene.expect_equal()
        assert [kind for kind, _ in scene.cluster.asked] == ["stream", "list", "watch"]
        assert scene.observer.failures == [], "a server without the feature is no failure"


async def test_a_server_that_ignores_initial_events_is_listed_in_pages_after_a_silence() -> None:
    async with Scene(cluster_of("ab", ignores_initial_events=True)).running() as scene:
        assert not scene.reflector.synced.is_set()
        await scene.clock.advance(400)
        assert scene.reflector.synced.is_set()
        await scene.expect_equal()
        assert [kind for kind, _ in scene.cluster.asked][:3] == ["stream", "list", "watch"]


async def test_a_cut_watch_resumes_and_lists_nothing() -> None:
    async with Scene(cluster_of("a")).running() as scene:
        scene.cluster.put("a", 1)
        await scene.clock.settle()
        scene.cluster.cut_watches()
        scene.cluster.delete("a")
        scene.cluster.put("b")
        await scene.clock.advance(5)
        await scene.expect_equal()
        assert scene.relists == 0
        assert [change[:2] for change in scene.mirror.heard[2:]] == [("DELETED", "a"), ("ADDED", "b")]


async def test_a_bookmark_moves_on_where_to_resume() -> None:
    async with Scene(cluster_of("a")).running() as scene:
        scene.cluster.put("a", 1)
        await scene.clock.settle()
        scene.cluster.revision += 500  # other resources change
        scene.cluster.send_bookmarks()
        await scene.clock.settle()
        assert scene.store.observed == scene.cluster.revision
        scene.cluster.compact()
        scene.cluster.cut_watches()
        await scene.clock.advance(5)
        assert scene.cluster.asked[-1] == ("watch", str(scene.cluster.revision))
        assert scene.relists == 0


async def test_a_bookmark_from_the_past_is_ignored() -> None:
    async with Scene(cluster_of("abc")).running() as scene:
        seen = scene.store.observed
        scene.cluster.behaviours = [Behaviour(late_bookmark=2)]
        scene.cluster.cut_watches()
        await scene.clock.advance(5)
        assert scene.store.observed == seen
        await scene.expect_equal()


async def test_after_an_expiry_missed_deletes_arrive_as_deletes() -> None:
    async with Scene(cluster_of("abc")).running() as scene:
        scene.cluster.behaviours = [Behaviour(error=TransportError("down"))]
        scene.cluster.cut_watches()
        await scene.clock.settle()
        scene.cluster.delete("a")
        scene.cluster.put("b", 1)
        scene.cluster.delete("c")
        scene.cluster.put("c")
        scene.cluster.put("d")
        scene.cluster.compact()
        before = len(scene.mirror.heard)
        await scene.clock.advance(30)
        await scene.expect_equal()
        assert scene.relists == 1
        assert sorted(scene.mirror.heard[before:]) == [
            ("ADDED", "c", False),
            ("ADDED", "d", False),
            ("DELETED", "a", False),
            ("DELETED", "c", False),
            ("MODIFIED", "b", False),
        ]


async def test_an_expiry_after_a_long_outage_is_not_waited_for_as_long_again() -> None:
    async with Scene(cluster_of("a")).running() as scene:
        down = [Behaviour(error=TransportError("down")) for _ in range(6)]
        scene.cluster.behaviours = [*down, Behaviour(error=GoneError("expired"))]
        scene.cluster.cut_watches()
        while scene.cluster.behaviours:
            await scene.clock.advance(0.5)
        assert scene.clock.monotonic() > 20, "waits had grown"
        assert scene.relists == 0
        await scene.clock.advance(1)
        assert scene.relists == 1


async def test_an_expiry_is_noticed_with_pages_too() -> None:
    async with Scene(cluster_of("abcde", streams_lists=False)).running() as scene:
        scene.cluster.behaviours = [Behaviour(error=GoneError("expired"))]
        scene.cluster.cut_watches()
        await scene.clock.settle()
        for name in "ace":
            scene.cluster.delete(name)
        await scene.clock.advance(30)
        await scene.expect_equal()
        assert [kind for kind, _ in scene.cluster.asked][3:] == ["probe", "watch", "list", "watch"]


async def test_a_list_cut_halfway_deletes_nothing_and_is_taken_again() -> None:
    async with Scene(cluster_of("abcd")).running() as scene:
        scene.cluster.behaviours = [Behaviour(error=GoneError("expired")), Behaviour(cut_after=2)]
        scene.cluster.cut_watches()
        await scene.clock.advance(60)
        await scene.expect_equal()
        assert scene.relists == 2
        assert len(scene.mirror.heard) == 4, "no false delete, no needless change"


async def test_a_continue_token_that_expires_restarts_the_list() -> None:
    cluster = cluster_of("abcde", streams_lists=False)
    cluster.behaviours = [Behaviour(), Behaviour(cut_after=2)]
    async with Scene(cluster).running() as scene:
        assert not scene.reflector.synced.is_set()
        await scene.clock.advance(10)
        assert scene.reflector.synced.is_set()
        await scene.expect_equal()


async def test_a_streamed_list_that_ends_without_its_bookmark_is_no_list() -> None:
    cluster = cluster_of("ab")
    cluster.behaviours = [Behaviour(cut_after=1)]
    async with Scene(cluster).running() as scene:
        assert not scene.reflector.synced.is_set()
        await scene.clock.advance(10)
        assert scene.reflector.synced.is_set()
        await scene.expect_equal()


@pytest.mark.parametrize("streams", [True, False])
async def test_a_stale_list_is_refused_and_taken_again(streams: bool) -> None:
    async with Scene(cluster_of("ab", streams_lists=streams)).running() as scene:
        scene.cluster.put("a", 1)
        scene.cluster.delete("b")
        scene.cluster.put("c")
        await scene.clock.settle()
        heard = len(scene.mirror.heard)
        scene.cluster.behaviours = [Behaviour(error=GoneError("expired")), Behaviour(behind=2), Behaviour(behind=3)]
        scene.cluster.cut_watches()
        await scene.clock.advance(60)
        await scene.expect_equal()
        assert scene.mirror.heard[heard:] == [], "nothing older replaced, revived or deleted anything"
        assert sum("older than" in failure for failure in scene.observer.failures) == 2


async def test_a_server_restored_from_a_backup_is_believed_in_the_end() -> None:
    async with Scene(cluster_of("ab")).running() as scene:
        backup, revision = dict(scene.cluster.objects), scene.cluster.revision
        for number in range(50):
            scene.cluster.put("a", number)
        scene.cluster.delete("b")
        scene.cluster.put("c")
        await scene.clock.settle()
        scene.mirror.highest.clear()
        scene.cluster.restore(backup, revision)
        await scene.clock.advance(400)
        await scene.expect_equal()
        scene.cluster.put("c", 1)
        scene.cluster.put("a", 2)
        await scene.clock.advance(60)  # a quiet model sends no bookmarks: it may just be waiting after a silence
        await scene.expect_equal()
        assert scene.store.observed == scene.cluster.revision


async def test_a_watch_that_ends_at_its_time_is_resumed_without_a_question() -> None:
    class Punctual(ModelCluster):
        async def watch(self, *args: Any, **query: Any) -> AsyncIterator[Any]:
            stream = super().watch(*args, **query)
            with contextlib.suppress(TimeoutError):
                async with scene.clock.timeout(query["timeout_seconds"]):
                    async for event in stream:
                        yield event

    scene = Scene(Punctual(), settings=ReflectorSettings(silence_seconds=3600))
    async with scene.running():
        await scene.clock.advance(1500)
        assert {kind for kind, _ in scene.cluster.asked} == {"stream", "watch"}


async def test_a_resume_from_the_future_lists_again() -> None:
    too_large = ServerTimeoutError(
        "Too large resource version", details={"causes": [{"reason": "ResourceVersionTooLarge"}]}
    )
    async with Scene(cluster_of("a")).running() as scene:
        scene.cluster.behaviours = [Behaviour(error=too_large)]
        scene.cluster.cut_watches()
        await scene.clock.advance(5)
        assert scene.relists == 1


async def test_a_refused_resume_lists_again() -> None:
    async with Scene(cluster_of("a")).running() as scene:
        scene.cluster.behaviours = [Behaviour(error=InvalidError("resourceVersion"))]
        scene.cluster.cut_watches()
        await scene.clock.advance(5)
        assert [kind for kind, _ in scene.cluster.asked] == ["stream", "probe", "watch", "stream"]


async def test_repeated_and_swapped_events_change_nothing_twice() -> None:
    cluster = cluster_of("a")
    cluster.behaviours = [Behaviour(copies=3, swap=True, replay=1)]
    async with Scene(cluster).running() as scene:
        cluster.put("a", 1)
        cluster.put("b")
        cluster.delete("a")
        cluster.put("c")
        await scene.expect_equal()
        assert [change[:2] for change in scene.mirror.heard].count(("DELETED", "a")) == 1


async def test_a_cut_amid_swapped_events_loses_none() -> None:
    cluster = cluster_of("a")
    cluster.behaviours = [Behaviour(swap=True, cut_after=3)]
    async with Scene(cluster).running() as scene:
        cluster.put("b")  # the stream sends c, is cut, and b must still come
        cluster.put("c")
        await scene.clock.advance(5)
        await scene.expect_equal()
        assert scene.relists == 0


async def test_a_silent_stream_is_given_up_and_resumed() -> None:
    async with Scene(cluster_of("a")).running() as scene:
        scene.cluster.behaviours = [Behaviour(silent=True)]
        scene.cluster.cut_watches()
        await scene.clock.advance(5)
        scene.cluster.put("b")
        await scene.clock.advance(100)
        assert B not in scene.store
        await scene.clock.advance(250)
        await scene.expect_equal()
        assert scene.relists == 0
        assert any("silent" in failure for failure in scene.observer.failures)


async def test_bookmarks_keep_a_quiet_stream_alive() -> None:
    async with Scene(cluster_of("a")).running() as scene:
        for _ in range(20):
            await scene.clock.advance(60)
            scene.cluster.send_bookmarks()
        assert scene.cluster.asked == [("stream", None)]


async def test_failures_wait_longer_each_time() -> None:
    cluster = cluster_of("a")
    cluster.behaviours = [Behaviour(error=TransportError("refused")) for _ in range(6)]
    async with Scene(cluster).running() as scene:
        moments: list[tuple[float, int]] = []
        for _ in range(200):
            await scene.clock.advance(0.5)
            if not moments or len(cluster.asked) > moments[-1][1]:
                moments.append((scene.clock.monotonic(), len(cluster.asked)))
        waits = [later[0] - earlier[0] for earlier, later in itertools.pairwise(moments)]
        assert len(cluster.asked) == 7
        assert waits[-1] > 4 * waits[0]
        assert scene.reflector.synced.is_set()


async def test_retry_after_is_obeyed() -> None:
    cluster = cluster_of("a")
    cluster.behaviours = [Behaviour(error=TooManyRequestsError("slow down", retry_after=20))]
    async with Scene(cluster).running() as scene:
        await scene.clock.advance(19)
        assert len(cluster.asked) == 1
        await scene.clock.advance(2)
        assert scene.reflector.synced.is_set()


async def test_what_only_a_person_can_mend_is_waited_for() -> None:
    cluster = cluster_of("a")
    cluster.behaviours = [Behaviour(error=ForbiddenError("no Role")) for _ in range(4)]
    async with Scene(cluster).running() as scene:
        await scene.clock.advance(60)
        await scene.expect_equal()
        assert scene.observer.failures == ["403 Forbidden: no Role"] * 4


async def test_a_server_that_ends_every_watch_at_once_is_not_hammered() -> None:
    class Hasty(ModelCluster):
        async def watch(self, *args: Any, **query: Any) -> AsyncIterator[Any]:
            self.asked.append(("watch", None))
            nothing: tuple[WatchEvent, ...] = ()
            for event in nothing:
                yield event

    cluster = Hasty()
    scene = Scene(cluster)
    scene.reflector._may_resume = True
    async with scene.running():
        await scene.clock.advance(120)
        assert sum(kind == "watch" for kind, _ in cluster.asked) < 12


async def test_a_handler_that_raises_harms_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    def broken(change: Change) -> None:
        if change.key == A:
            raise RuntimeError("bug")

    with caplog.at_level(logging.ERROR):
        async with Scene(cluster_of("ab"), handlers=[broken]).running() as scene:
            await scene.expect_equal()
            assert scene.observer.handlers == ["bug"]
    assert [record.getMessage() for record in caplog.records] == ["handler failed"]


async def test_a_handler_can_be_added_before_the_run() -> None:
    scene = Scene(cluster_of("a"))
    later = Mirror()
    scene.reflector.add_handler(later)
    async with scene.running():
        assert later.of(scene.store)


async def test_a_garbled_object_is_a_broken_stream_and_survived() -> None:
    cluster = cluster_of("a")
    async with Scene(cluster).running() as scene:
        cluster.revision += 1
        cluster.history.append((cluster.revision, "ADDED", {"no": "metadata"}))
        cluster.cut_watches()
        await scene.clock.advance(5)
        assert any("numeric resourceVersion" in failure for failure in scene.observer.failures)
        cluster.history.pop()
        cluster.put("b")
        await scene.clock.advance(60)
        await scene.expect_equal()


async def test_a_bug_ends_the_run_loudly() -> None:
    class Broken(ModelCluster):
        def watch(self, *args: Any, **query: Any) -> AsyncIterator[Any]:
            raise ZeroDivisionError

    scene = Scene(Broken())
    with pytest.raises(ZeroDivisionError):
        await scene.reflector.run()


async def test_selectors_and_namespace_are_passed_on() -> None:
    seen: list[dict[str, Any]] = []

    class Asked(ModelCluster):
        def watch(self, resource: Resource, namespace: str | None = None, **query: Any) -> AsyncIterator[Any]:
            seen.append({"namespace": namespace, **query})
            return super().watch(resource, namespace, **query)

    scene = Scene(Asked(), namespace="team", labels={"a": "b"}, fields="metadata.name=x")
    async with scene.running():
        (query,) = seen
        assert (query["namespace"], query["labels"], query["fields"]) == ("team", {"a": "b"}, "metadata.name=x")
        assert 300 <= query["timeout_seconds"] <= 600


async def test_lists_are_told_with_their_time() -> None:
    cluster = cluster_of("ab")
    cluster.behaviours = [Behaviour(silent=True)]
    async with Scene(cluster).running() as scene:
        await scene.clock.advance(200)
        assert [objects for objects, _ in scene.observer.lists] == [2]


async def test_a_large_list_lets_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(pace, "perf_counter", lambda: next(ticks) * 0.001)  # a millisecond of work per object
    cluster = ModelCluster()
    for number in range(500):
        cluster.put(f"thing-{number}")
    scene = Scene(cluster)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while not scene.reflector.synced.is_set():
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(scene.reflector.run())
    await other()
    assert turns > 50
    assert len(scene.store) == 500
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
