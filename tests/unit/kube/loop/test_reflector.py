from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.kube.loop.mirror import Mirror
from tests.unit.kube.loop.model_cluster import Behaviour, ModelCluster
from tests.unit.kube.loop.scene import Scene, cluster_of
from trainplane.kube import pace
from trainplane.kube.errors import (
    GoneError,
    InvalidError,
    ServerTimeoutError,
    TransportError,
)
from trainplane.kube.reflector import CATCH_UP_SECONDS, ReflectorSettings
from trainplane.kube.resource import Key, Resource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainplane.kube.store import Change


A = Key("default", "a")
B = Key("default", "b")


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


async def test_the_first_events_of_a_resumed_watch_do_not_show_that_the_store_is_up_to_date() -> None:
    async with Scene(cluster_of("a")).running() as scene:
        scene.cluster.put("a", 1)
        await scene.clock.settle()
        heard = scene.store.heard_at
        assert heard == scene.clock.monotonic()
        scene.cluster.cut_watches()
        scene.cluster.put("b")
        await scene.clock.advance(1.5)
        assert B in scene.store
        assert scene.store.heard_at == heard
        await scene.clock.advance(CATCH_UP_SECONDS)
        scene.cluster.put("a", 2)
        await scene.clock.settle()
        assert scene.store.heard_at == scene.clock.monotonic()


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


async def test_a_restored_server_that_was_away_for_long_is_believed_as_soon() -> None:
    class Away(ModelCluster):
        is_away = False

        async def list_pages(self, *args: Any, **query: Any) -> AsyncIterator[Any]:
            if self.is_away:
                raise TransportError("no connection")
            async for page in super().list_pages(*args, **query):
                yield page

    cluster = Away()
    cluster.put("a")
    async with Scene(cluster).running() as scene:
        backup, revision = dict(cluster.objects), cluster.revision
        for number in range(50):
            cluster.put("a", number)
        await scene.clock.settle()
        scene.mirror.highest.clear()
        cluster.is_away = True
        cluster.restore(backup, revision)
        await scene.clock.advance(300)
        cluster.is_away = False
        await scene.clock.advance(30 + 50)  # the wait that has begun, and those between lists that are too old
        await scene.expect_equal()


async def test_a_server_restored_from_a_backup_with_its_revision_raised_is_believed_at_once() -> None:
    async with Scene(cluster_of("ab")).running() as scene:
        backup = dict(scene.cluster.objects)
        scene.cluster.put("a", 1)
        scene.cluster.delete("b")
        scene.cluster.put("c")
        await scene.clock.settle()
        scene.mirror.highest.clear()
        scene.cluster.restore(backup, scene.cluster.revision + 1000)
        scene.cluster.compact()
        await scene.clock.advance(10)
        await scene.expect_equal()
        scene.cluster.put("b", 1)
        await scene.clock.settle()
        await scene.expect_equal()


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("writes_since", [2, 9], ids=["behind", "caught-up"])
async def test_a_version_that_a_restored_server_gave_twice_is_read_anew(streams: bool, writes_since: int) -> None:
    async with Scene(cluster_of("ab", streams_lists=streams)).running() as scene:
        cluster = scene.cluster
        backup, revision = dict(cluster.objects), cluster.revision
        cluster.put("a", 1)
        for number in range(5):
            cluster.put("b", number)
        await scene.clock.settle()
        twice = scene.store.resource_version(Key("default", "a"))
        scene.mirror.highest.clear()
        cluster.restore(backup, revision)
        cluster.put("a", 2)
        assert cluster.objects[Key("default", "a")]["metadata"]["resourceVersion"] == str(twice)
        for _ in range(writes_since - 1):
            cluster.put("c")
        cluster.compact()
        await scene.clock.advance(60)
        await scene.expect_equal()


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
