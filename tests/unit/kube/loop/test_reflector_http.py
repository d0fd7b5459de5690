"""The reflector with the real client against the fake server: HTTP, framing and all, and every fault it knows."""

# A double has the signature of what it stands for.
# ruff: noqa: ARG002
from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.kube.loop.mirror import Mirror
from tests.unit.kube.loop.objects import THINGS, seeded
from trainplane.kube.backoff import Backoff
from trainplane.kube.observer import Unobserved
from trainplane.kube.reflector import Reflector, ReflectorSettings
from trainplane.kube.resource import Key
from trainplane.kube.store import Change, Store
from trainplane.kube.testing.faults import (
    Cut,
    Dribble,
    Drop,
    Expire,
    Fault,
    Garble,
    Pad,
    Refuse,
    Reorder,
    Repeat,
    Silence,
    Stale,
)
from trainplane.kube.testing.server import FakeServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from trainplane.kube.resource import Resource

HASTY = Backoff(base=0.005, cap=0.02)
PATIENCE = 60


class Scene(Unobserved):
    """A server, a reflector of it, and a way to wait for what the reflector does."""

    def __init__(self, server: FakeServer) -> None:
        self.server = server
        self.store = Store(THINGS)
        self.mirror = Mirror()
        self.failures: list[str] = []
        self._happened = asyncio.Event()

    def hear(self, _: Change) -> None:
        self._happened.set()

    def stream_failed(self, resource: Resource, error: Exception) -> None:
        self.failures.append(str(error))
        self._happened.set()

    def put(self, name: str, value: int = 0) -> None:
        known = self.server.objects(THINGS).get(Key("default", name))
        metadata = known["metadata"] if known else {"name": name, "namespace": "default"}
        self.server.put(THINGS, {"metadata": metadata, "spec": {"value": value}})

    def remove(self, name: str) -> None:
        self.server.remove(THINGS, name, "default")

    def is_equal(self) -> bool:
        truth = {key: essence(obj) for key, obj in self.server.objects(THINGS).items()}
        held = {key: essence(self.store.decode(key, dict) or {}) for key in self.store}
        return held == truth and self.mirror.of(self.store)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._happened.clear()
                await self._happened.wait()

    async def until_equal(self) -> None:
        await self.until(self.is_equal)

    @asynccontextmanager
    async def running(self, silence_seconds: float = 150) -> AsyncIterator[None]:
        settings = ReflectorSettings(page_size=3, silence_seconds=silence_seconds, backoff=HASTY)
        async with self.server.client() as client:
            reflector = Reflector(
                client, THINGS, self.store, [self.mirror, self.hear], settings=settings, observer=self, random=seeded(5)
            )
            task = asyncio.create_task(reflector.run())
            async with asyncio.timeout(PATIENCE):
                await reflector.synced.wait()
            yield
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def essence(obj: dict[str, Any]) -> tuple[str, str, Any]:
    """Return what makes an object itself; padding, a fault, is not part of it."""
    return obj["metadata"]["uid"], obj["metadata"]["resourceVersion"], obj["spec"]


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with FakeServer() as server:
        yield Scene(server)


async def test_lists_and_follows(scene: Scene) -> None:
    for name in "abcde":
        scene.put(name)
    async with scene.running():
        assert scene.is_equal()
        scene.put("a", 1)
        scene.remove("b")
        scene.put("f")
        await scene.until_equal()
        assert len(scene.server.asked("watch")) == 1
        assert scene.server.asked("list") == []


async def test_lists_in_pages_where_streaming_is_refused(scene: Scene) -> None:
    for name in "abcdefgh":
        scene.put(name)
    scene.server.add_fault(Refuse(code=422, reason="Invalid", verb="watch"))
    async with scene.running():
        assert scene.is_equal()
        assert len(scene.server.asked("list")) == 3
        scene.put("z")
        await scene.until_equal()


FAULTS: dict[str, Callable[[], list[Fault]]] = {
    "cut in an event": lambda: [Cut(verb="watch", after=1)],
    "cut between events": lambda: [Cut(verb="watch", after=2, mid_line=False)],
    "garbled": lambda: [Garble(verb="watch", after=1)],
    "expired": lambda: [Expire(verb="watch", after=1)],
    "expired, and again, and the list cut": lambda: [
        Expire(verb="watch"),
        Expire(verb="watch"),
        Cut(verb="watch", after=2),
    ],
    "repeated": lambda: [Repeat(verb="watch", copies=3)],
    "reordered": lambda: [Reorder(verb="watch", window=3)],
    "410": lambda: [Refuse(verb="watch", code=410, reason="Expired")],
    "503": lambda: [Refuse(verb="watch", code=503)],
    "429": lambda: [Refuse(verb="watch", code=429, retry_after=0)],
    "dropped": lambda: [Drop(verb="watch")],
    "long lines": lambda: [Pad(verb="watch", size=1_000_000)],
    "small chunks": lambda: [Dribble(verb="watch", chunk=7)],
    "silent": lambda: [Silence(verb="watch")],
}


@pytest.mark.parametrize("name", FAULTS)
async def test_each_fault_is_survived(scene: Scene, name: str) -> None:
    for letter in "abcde":
        scene.put(letter)
    async with scene.running(silence_seconds=0.05 if name == "silent" else 150):
        for fault in FAULTS[name]():
            scene.server.add_fault(fault)
        scene.server.watching.cut()
        scene.put("a", 1)
        scene.remove("b")
        scene.put("f")
        scene.remove("c")
        scene.put("c", 2)
        await scene.until_equal()
        scene.put("last")
        await scene.until_equal()


async def test_missed_deletes_are_seen_after_an_expiry(scene: Scene) -> None:
    for name in "abc":
        scene.put(name)
    async with scene.running():
        await scene.server.stop()
        scene.remove("a")
        scene.remove("c")
        scene.server.storage.compact()
        await scene.server.start()
        await scene.until_equal()
        assert [change[:2] for change in scene.mirror.heard[3:]] == [("DELETED", "a"), ("DELETED", "c")]


async def test_stale_pages_are_refused(scene: Scene) -> None:
    for name in "abcd":
        scene.put(name)
    stale = scene.server.storage.revision
    scene.server.add_fault(Refuse(code=422, reason="Invalid", verb="watch"))
    async with scene.running():
        scene.remove("a")
        scene.put("b", 1)
        await scene.until_equal()
        before = len(scene.mirror.heard)
        scene.server.add_fault(Stale(verb="list", revision=stale, times=4))  # two lists of two pages
        scene.server.add_fault(Refuse(code=410, reason="Expired", verb="watch"))
        scene.server.watching.cut()
        await scene.until(lambda: sum("older than" in failure for failure in scene.failures) == 2)
        scene.put("b", 2)
        await scene.until_equal()
        assert {change[:2] for change in scene.mirror.heard[before:]} == {("MODIFIED", "b")}


async def test_a_long_run_of_everything_ends_equal(scene: Scene) -> None:
    dice = seeded(11)
    async with scene.running():
        for step in range(150):
            name = dice.choice("abcdefghij")
            if dice.random() < 0.3 and any(key.name == name for key in scene.server.objects(THINGS)):
                scene.remove(name)
            else:
                scene.put(name, step)
            if step % 6 == 0:
                for fault in FAULTS[dice.choice([name for name in FAULTS if name != "silent"])]():
                    scene.server.add_fault(fault)
                scene.server.watching.cut()
            if step % 40 == 39:
                scene.server.storage.compact()
            if step % 3 == 0:
                await asyncio.sleep(0)
        scene.server.faults.clear()
        scene.put("last")
        await scene.until_equal()
