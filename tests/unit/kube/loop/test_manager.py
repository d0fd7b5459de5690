# A double has the signature of what it stands for.
# ruff: noqa: ARG002
from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.kube.loop.model_cluster import Behaviour, ModelCluster
from tests.unit.kube.loop.objects import THINGS
from trainplane.kube.controller import DONE, Controller, Result, own_key
from trainplane.kube.manager import Manager, initial_sync_uncollected
from trainplane.kube.reflector import Reflector
from trainplane.kube.store import Store
from trainplane.kube.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.kube.resource import Key


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Leave the garbage collector as it was."""
    yield
    gc.unfreeze()


class Scene:
    """Two mirrored clusters and a controller on both."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.clusters = ModelCluster(), ModelCluster()
        self.worked: list[str] = []
        self.controller: Controller[Key] = Controller("test", self.reconcile, self.clock)
        self.reflectors = [
            Reflector(cluster, THINGS, Store(THINGS), [self.controller.source(own_key)], self.clock)
            for cluster in self.clusters
        ]
        self.manager = Manager(self.reflectors, [self.controller])

    async def reconcile(self, key: Key) -> Result:
        self.worked.append(key.name)
        return DONE

    async def start(self, **options: Any) -> asyncio.Task[None]:
        task = asyncio.create_task(self.manager.run(**options))
        await self.clock.settle()
        return task

    async def stop(self, task: asyncio.Task[None]) -> None:
        self.manager.stop()
        await asyncio.wait_for(task, 60)
        assert [cluster.watchers for cluster in self.clusters] == [0, 0]
        assert self.clock.sleepers == 0


async def test_work_begins_when_all_stores_are_in_sync() -> None:
    scene = Scene()
    scene.clusters[0].put("a")
    scene.clusters[1].behaviours = [Behaviour(silent=True)]
    task = await scene.start()
    assert scene.reflectors[0].synced.is_set()
    assert not scene.manager.ready.is_set()
    assert scene.worked == []
    await scene.clock.advance(400)
    assert scene.manager.ready.is_set()
    assert scene.worked == ["a"]
    scene.clusters[1].put("b")
    await scene.clock.settle()
    assert scene.worked == ["a", "b"]
    await scene.stop(task)


async def test_a_follower_is_ready_and_waits_with_a_full_queue() -> None:
    scene = Scene()
    scene.clusters[0].put("a")
    leading = asyncio.Event()
    task = await scene.start(lead=leading.wait)
    scene.clusters[0].put("b")
    await scene.clock.settle()
    assert scene.manager.ready.is_set()
    assert len(scene.controller.queue) == 2
    assert scene.worked == []
    leading.set()
    await scene.clock.settle()
    assert sorted(scene.worked) == ["a", "b"]
    await scene.stop(task)


async def test_it_stops_before_it_ever_was_in_sync() -> None:
    scene = Scene()
    scene.clusters[0].behaviours = [Behaviour(silent=True)]
    await scene.stop(await scene.start())


async def test_reconciles_under_way_still_see_the_world_move() -> None:
    scene = Scene()
    seen: list[bool] = []
    release = asyncio.Event()

    async def slow(key: Key) -> Result:
        await release.wait()
        seen.append(len(scene.reflectors[1].store) == 1)
        return DONE

    scene.controller._reconcile = slow
    scene.clusters[0].put("a")
    task = await scene.start()
    scene.manager.stop()
    await scene.clock.settle()
    scene.clusters[1].put("late")
    await scene.clock.settle()
    release.set()
    await asyncio.wait_for(task, 60)
    assert seen == [True]


async def test_a_bug_anywhere_ends_everything() -> None:
    scene = Scene()

    class Broken(ModelCluster):
        def watch(self, *args: Any, **query: Any) -> Any:
            raise ZeroDivisionError

    scene.reflectors[0]._client = Broken()
    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.wait_for(scene.manager.run(), 60)
    assert caught.group_contains(ZeroDivisionError)
    assert scene.clusters[1].watchers == 0


def test_a_start_is_spared_full_collections_and_then_frozen() -> None:
    usual = gc.get_threshold()
    frozen = gc.get_freeze_count()
    with initial_sync_uncollected():
        assert gc.get_threshold()[:2] == usual[:2]
        assert gc.get_threshold()[2] > 100_000
    assert gc.get_threshold() == usual
    assert gc.get_freeze_count() > frozen


def test_a_start_that_fails_leaves_the_collector_as_it_was() -> None:
    usual = gc.get_threshold()
    with pytest.raises(RuntimeError), initial_sync_uncollected():
        raise RuntimeError
    assert gc.get_threshold() == usual
