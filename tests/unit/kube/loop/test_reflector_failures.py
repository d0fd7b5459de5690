"""The reflector where lists and watches fail: how long it waits, for whom, and what it says."""
# A double has the signature of what it stands for.
# ruff: noqa: ARG002

from __future__ import annotations

import itertools
import logging
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.kube.loop.model_cluster import Behaviour, ModelCluster
from tests.unit.kube.loop.scene import Scene, cluster_of
from trainplane.kube.errors import (
    ApiError,
    ForbiddenError,
    NotFoundError,
    TooManyRequestsError,
    TransportError,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainplane.kube.codec import WatchEvent


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


@pytest.mark.parametrize("error", [NotFoundError("no CRD"), ForbiddenError("no Role")])
async def test_what_is_not_needed_is_looked_for_each_minute_and_said_once_to_be_absent(
    error: ApiError, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = cluster_of("a")
    cluster.behaviours = [Behaviour(error=error) for _ in range(5)]
    with caplog.at_level(logging.INFO):
        async with Scene(cluster, needed=False).running() as scene:
            assert scene.reflector.settled.is_set(), "nobody waits for it"
            assert not scene.reflector.synced.is_set()
            await scene.clock.advance(200)
            assert len(cluster.asked) in {4, 5}
            await scene.clock.advance(120)
            await scene.expect_equal()
            assert scene.reflector.synced.is_set()
    absent = [record for record in caplog.records if "not mirrored" in record.message]
    assert [record.levelno for record in absent] == [logging.INFO]
    assert scene.observer.failures == ([] if isinstance(error, NotFoundError) else [str(error)] * 5)


async def test_what_is_not_needed_is_waited_for_as_long_as_nothing_is_known_of_it() -> None:
    cluster = cluster_of("a")
    cluster.behaviours = [Behaviour(error=TransportError("refused"))]
    async with Scene(cluster, needed=False).running() as scene:
        assert not scene.reflector.settled.is_set()
        await scene.clock.advance(5)
        assert scene.reflector.settled.is_set()


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
