"""Stores and a controller while the API server and etcd are killed under a steady 50 writes a second."""

from __future__ import annotations

import asyncio
import itertools
import signal
from typing import TYPE_CHECKING

import pytest

from tests.integration.kube.gate import Gate, through
from tests.integration.kube.mirror import SELECTOR, SILENCE, Copy, Mirror, contents, listed
from tests.integration.kube.support import CONFIGMAPS, configmap, until
from tests.size import FULL, sized
from trainplane.kube.client import Client
from trainplane.kube.resource import Key

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from lab.cluster import Cluster
    from tests.integration.kube.mirror import Writer
    from tests.suite import SuiteReport
    from trainplane.kube.config import Config
    from trainplane.kube.resource import Resource

FAULTS = sized(6, full=20)
LAG = 0.3
"""Seconds by which the controller sees its own writes later than all else, so that it must remember them."""


class Chaos:
    """Ways to break a cluster and mend it; each ends with the API server ready."""

    def __init__(self, cluster: Cluster, writer: Writer, *gates: Gate) -> None:
        self._cluster = cluster
        self._writer = writer
        self._gates = gates

    def faults(self) -> list[Callable[[], Awaitable[None]]]:
        return [self.lose_server, self.lose_etcd, self.lose_both, self.be_forgotten, self.stop_server]

    async def lose_server(self) -> None:
        await self._restart("kube-apiserver")

    async def lose_etcd(self) -> None:
        await self._restart("etcd")

    async def lose_both(self) -> None:
        await self._restart("etcd", "kube-apiserver")

    async def stop_server(self) -> None:
        """End it as a roll-out does, with a moment to say goodbye; a long one would only wait for our watches."""
        self._cluster.engines()["kube-apiserver"].process.signal(signal.SIGTERM)
        await asyncio.sleep(2)
        await self._restart("kube-apiserver")

    async def be_forgotten(self) -> None:
        """Miss changes, then find a server that does not remember them."""
        for gate in self._gates:
            gate.cut()
        enough = self._writer.done + 50
        await until(lambda: self._writer.done >= enough, "changes that are missed")
        await self._restart("kube-apiserver")
        for gate in self._gates:
            gate.mend()

    async def fall_silent(self) -> None:
        """Miss changes on connections that stay open."""
        for gate in self._gates:
            gate.swallow()
        await asyncio.sleep(SILENCE + 1)
        for gate in self._gates:
            gate.mend()

    async def _restart(self, *engines: str) -> None:
        for engine in engines:
            await asyncio.to_thread(self._cluster.kill, engine)
        await asyncio.sleep(0.5)
        for engine in engines:
            await asyncio.to_thread(self._cluster.revive, engine)
        await asyncio.to_thread(self._cluster.wait_ready)


@pytest.mark.timeout(1800 if FULL else 300)
async def test_stores_equal_a_fresh_list_after_all_of_it(
    cluster: Cluster, config: Config, namespace: str, widgets: Resource, report: SuiteReport
) -> None:
    async with (
        Gate(cluster.port) as gate,
        Gate(cluster.port, lag=LAG) as slow_gate,
        Client.connect(through(gate, config)) as client,
        Client.connect(through(slow_gate, config)) as lagging,
        Client.connect(config) as direct,
    ):
        mirror = Mirror(client, namespace, writer=direct, lagging=lagging)
        async with asyncio.TaskGroup() as group:
            tasks: list[asyncio.Task[None]] = [group.create_task(reflector.run()) for reflector in mirror.reflectors]
            tasks.append(group.create_task(mirror.controller.run()))
            enough = asyncio.Event()
            writing = group.create_task(mirror.writer.run(enough))
            await break_things(Chaos(cluster, mirror.writer, gate, slow_gate), mirror, direct, namespace)
            await until(lambda: mirror.writer.deleted > 50, "enough deletions")
            enough.set()
            await writing
            await settle(mirror, direct, namespace)
            for task in tasks:
                task.cancel()
        fresh = [
            await listed(direct, mirror.sources, namespace, SELECTOR),
            await listed(direct, mirror.copies, namespace),
        ]
    report.figure("faults", FAULTS)
    report.figure("writes", mirror.writer.done)
    report.figure("writes_failed", mirror.writer.failed)
    report.figure("reconciles", mirror.copier.reconciles)
    report.figure("lists", mirror.ear.lists)
    report.row(stream_failures=dict(mirror.ear.failures))
    assert mirror.broken == []
    assert mirror.errors == []
    for store, truth in zip((mirror.sources, mirror.copies), fresh, strict=True):
        assert contents(store) == contents(truth)
        told = {key: (version, data) for key, (version, _, data) in contents(store).items()}
        assert mirror.witnesses[store].seen == told, "what handlers were told adds up to the store"
    assert mirror.writer.done > FAULTS * 50
    assert mirror.writer.deleted > 50
    assert mirror.copier.waits, "own writes were waited for"
    assert mirror.ear.failures["GoneError"], "a server that had forgotten was met"
    assert mirror.ear.failures["StreamError"], "streams were cut"


async def break_things(chaos: Chaos, mirror: Mirror, client: Client, namespace: str) -> None:
    """Break one thing after the other, each while everything works: a write is seen, and its copy, and 75 more."""
    for number, fault in enumerate(itertools.islice(itertools.cycle(chaos.faults()), FAULTS)):
        enough = mirror.writer.done + 75
        await pass_through(mirror, client, Key(namespace, "marker"), size=number)
        await until(lambda enough=enough: mirror.writer.done >= enough, "writes between two faults")  # type: ignore[misc]
        if number % 5 == 3:
            await chaos.fall_silent()
        await fault()


async def pass_through(mirror: Mirror, client: Client, key: Key, *, size: int) -> None:
    """Write a source and wait until the stores have it, and its copy."""
    body = configmap(key.name, key.namespace, labels=SELECTOR, size=str(size))
    version = int((await client.apply(CONFIGMAPS, body))["metadata"]["resourceVersion"])
    await until(lambda: mirror.sources.resource_version(key) == version, "a write in the store", seconds=120)

    def is_copied() -> bool:
        copy = mirror.copies.decode(key, Copy)
        return copy is not None and copy.spec.size == size

    await until(is_copied, "its copy in the store", seconds=120)


async def settle(mirror: Mirror, client: Client, namespace: str) -> None:
    """Wait until the stores have the very last write, and the controller has followed."""
    await pass_through(mirror, client, Key(namespace, "last"), size=1)
    await until(lambda: mirror.in_step() and not mirror.controller.queue.working, "copies in step with sources")
