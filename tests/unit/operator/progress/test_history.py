"""The short history: how it is thinned, and when it is written."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.operator.objects import NAMESPACE, condition, train_job
from tests.unit.operator.progress.test_reports import COLLECTION, KEY
from tests.unit.operator.world import MemoryClient
from trainplane.kube.resource import Key
from trainplane.kube.testing.clock import FakeClock
from trainplane.kube.testing.storage import Storage
from trainplane.kube.testing.verbs import collection_of
from trainplane.operator.apply import Writer
from trainplane.operator.progress.history import INTERVAL, History
from trainplane.operator.progress.series import BYTES, METRICS, POINTS, Series, read
from trainplane.operator.stores import Stores
from trainplane.resources import CONFIG_MAPS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CONFIG = Key(NAMESPACE, "job-history")


@given(st.integers(1, 3000))
def test_points_are_few_even_and_have_both_ends(count: int) -> None:
    series = Series()
    for number in range(count):
        series.add(1_000_000 + number, {"loss": str(number)})
    points = series.points("loss")
    assert len(points) <= POINTS
    assert [points[0], points[-1]] == [(1_000_000.0, 0.0), (1_000_000.0 + count - 1, count - 1.0)]
    assert [moment for moment, _ in points] == sorted({moment for moment, _ in points})
    gaps = [later - earlier for (earlier, _), (later, _) in pairwise(points[:-1])]
    assert not gaps or max(gaps) <= 2 * min(gaps)
    assert count < 30 or len(points) >= min(count, POINTS) / 2 - 2


@given(
    st.dictionaries(st.text(max_size=64), st.text(max_size=64) | st.floats().map(str), max_size=256),
    st.integers(1, 200),
)
def test_whatever_is_reported_it_stays_small(values: dict[str, str], count: int) -> None:
    series = Series()
    for number in range(count):
        series.add(1.7e9 + number * 10, values)
    data = series.encode()
    assert len(data) <= BYTES
    assert len(json.loads(data)["metrics"]) <= METRICS
    again = Series(read(data.decode()))
    assert len(again.encode()) <= BYTES


@pytest.mark.parametrize(
    "data", [None, "", "{", "[]", '{"metrics": {"a": 1}}', "x" * 100_000, '{"every": -5}', '{"every": "x"}']
)
def test_what_a_tenant_wrote_there_is_not_believed(data: Any) -> None:
    series = Series(read(data))
    series.add(1.0, {"loss": "2"})
    assert series.points("loss") == [(1.0, 2.0)]


def test_it_goes_on_where_it_was() -> None:
    series = Series()
    for number in range(500):
        series.add(float(number), {"loss": str(number)})
    again = Series(read(series.encode().decode()))
    for number in range(500, 600):
        again.add(float(number), {"loss": str(number)})
    points = again.points("loss")
    assert (points[0], points[-1]) == ((0, 0), (599, 599))
    assert len(points) <= POINTS


class Scene:
    def __init__(self, storage: Storage | None = None, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.storage = storage or Storage()
        self.client = MemoryClient(self.storage)
        self.stores = Stores()
        self.leads = storage is None
        writer = Writer(self.client, lambda: self.leads)
        self.history = History(self.client, writer, self.stores.train_jobs, self.clock, leads=lambda: self.leads)
        self.seen = 0
        if storage is None:
            self.storage.put(COLLECTION, train_job())
        self.sync()
        self.leads = True  # it followed until now

    def sync(self) -> None:
        store = self.stores.train_jobs
        for change in self.storage.history[self.seen :]:
            if change.collection != COLLECTION:
                continue
            obj = change.after if change.after is not None else change.final
            header = store.read(msgspec.Raw(msgspec.json.encode(obj)))
            for one in store.put(header) if change.after is not None else store.delete(header):
                self.history.changed(one)
        self.seen = len(self.storage.history)

    async def say(self, percent: int, *conditions: Any, **metrics: str) -> None:
        job = self.storage.objects[COLLECTION][KEY]
        told = {
            "progressPercentage": percent,
            "metrics": [{"name": name, "value": value} for name, value in metrics.items()],
            "lastUpdatedTime": f"{self.clock.now():%Y-%m-%dT%H:%M:%SZ}",
        }
        self.storage.put(COLLECTION, {**job, "status": {"trainerStatus": told, "conditions": list(conditions)}})
        self.sync()
        await self.clock.advance(0.1)

    @property
    def kept(self) -> dict[str, list[list[float]]]:
        found = self.storage.objects.get(collection_of(CONFIG_MAPS), {}).get(CONFIG)
        assert found is not None
        assert found["metadata"]["ownerReferences"][0]["uid"] == "uid-job"
        metrics: dict[str, list[list[float]]] = json.loads(found["data"]["metrics"])["metrics"]
        return metrics


@asynccontextmanager
async def running(scene: Scene) -> AsyncIterator[Scene]:
    task = asyncio.create_task(scene.history.controller.run())
    try:
        yield scene
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_once_a_minute_and_at_the_end() -> None:
    async with running(Scene()) as scene:
        for number in range(30):
            await scene.say(number, loss=str(1 / (number + 1)))
            await scene.clock.advance(9.9)
        writes = [one for one in scene.client.writes if "configmaps" in one]
        assert set(writes) == {"apply configmaps job-history"}
        assert len(writes) in {5, 6}
        await scene.say(100, condition("Complete", "x"), loss="0.01")
        assert [value for _, value in scene.kept["progress"]] == [*range(30), 100]
        assert scene.kept["loss"][-1][1] == 0.01
        assert len(scene.history) == 0


@asynccontextmanager
async def writing(scene: Scene, monkeypatch: pytest.MonkeyPatch, *conditions: Any) -> AsyncIterator[None]:
    """Stand where the history of a TrainJob is on its way to the API server; it arrives at the end."""
    apply, arrives = scene.client.apply, asyncio.Event()

    async def slow(*arguments: Any, **options: Any) -> Any:
        await arrives.wait()
        return await apply(*arguments, **options)

    monkeypatch.setattr(scene.client, "apply", slow)
    await scene.say(50, *conditions)
    yield
    arrives.set()
    await scene.clock.advance(0.1)


async def test_the_last_report_may_come_while_the_end_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found in CI: its end, written after the TrainJob's own, was forgotten with the rest."""
    async with running(Scene()) as scene:
        await scene.say(1)
        async with writing(scene, monkeypatch, condition("Complete", "x")):
            await scene.say(100, condition("Complete", "x"))
        assert [value for _, value in scene.kept["progress"]] == [1, 50, 100]
        assert len(scene.history) == 0


async def test_nothing_is_left_of_one_that_goes_while_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(Scene()) as scene:
        async with writing(scene, monkeypatch):
            scene.storage.delete(COLLECTION, KEY)
            scene.sync()
        assert (len(scene.history), scene.history._written) == (0, {})


async def test_who_does_not_lead_keeps_nothing() -> None:
    async with running(Scene()) as scene:
        scene.leads = False
        await scene.say(1)
        await scene.clock.advance(INTERVAL * 2)
        assert scene.client.asked == []
        assert len(scene.history) == 0


async def test_the_next_leader_goes_on() -> None:
    async with running(Scene()) as scene:
        await scene.say(1)
    later = Scene(scene.storage, scene.clock)
    async with running(later):
        await later.clock.advance(INTERVAL)
        await later.say(2)
        assert [value for _, value in later.kept["progress"]] == [1, 2]


async def test_an_object_of_somebody_else_is_left_alone() -> None:
    async with running(Scene()) as scene:
        theirs = {"metadata": {"name": "job-history", "namespace": NAMESPACE}, "data": {"metrics": "mine"}}
        scene.storage.put(collection_of(CONFIG_MAPS), {"apiVersion": "v1", "kind": "ConfigMap", **theirs})
        for number in range(200):
            await scene.say(number % 100)
            await scene.clock.advance(1)
        assert scene.client.writes == []
        assert len(scene.history._waiting[KEY]) == POINTS
        scene.storage.delete(collection_of(CONFIG_MAPS), CONFIG)
        await scene.clock.advance(INTERVAL)
        assert scene.kept["progress"][-1][1] == 99


async def test_one_that_never_reports_costs_nothing() -> None:
    async with running(Scene()) as scene:
        job = scene.storage.objects[COLLECTION][KEY]
        scene.storage.put(COLLECTION, {**job, "status": {"conditions": [condition("Complete", "x")]}})
        scene.sync()
        await scene.clock.advance(INTERVAL)
        assert scene.client.asked == []
