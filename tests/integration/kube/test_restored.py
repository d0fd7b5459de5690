"""A mirror while etcd is restored from a backup with etcdutl, on a cluster of its own in which nobody else writes."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

import pytest

from lab import backup
from lab.cluster import Cluster
from tests.integration.kube.gate import Gate, through
from tests.integration.kube.mirror import SELECTOR, contents, listed
from tests.integration.kube.support import CONFIGMAPS, configmap, until
from trainplane.kube.backoff import Backoff
from trainplane.kube.client import Client
from trainplane.kube.loading import load_config
from trainplane.kube.reflector import Reflector, ReflectorSettings
from trainplane.kube.resource import Key
from trainplane.kube.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.suite import SuiteReport

NAMESPACE = "default"
BUMP = 1_000_000_000
ROOM = 40
"""Versions that others may take while the API server starts, and after that: it writes a few for itself."""
TWICE = [f"twice-{number}" for number in range(10)]
"""ConfigMaps of which the restored server gives at least one a version that it had before."""
SETTINGS = ReflectorSettings(backoff=Backoff(base=0.1, cap=0.5))
"""Five lists that are too old are five waits: here of half a second."""


@pytest.fixture(scope="module")
def restorable() -> Iterator[Cluster]:
    cluster = Cluster.up(f"restored-{os.getpid()}", owned=True)
    try:
        for engine in ("kube-controller-manager", "kube-scheduler"):
            cluster.kill(engine)
        yield cluster
    finally:
        cluster.down()


class Scribe:
    """Writes ConfigMaps, something else each time."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._writes = 0

    async def write(self, *names: str) -> list[int]:
        """Make or change ConfigMaps; returns the versions that they got."""
        return [await self._write(name) for name in names]

    async def _write(self, name: str) -> int:
        self._writes += 1
        body = configmap(name, NAMESPACE, labels=SELECTOR, writes=str(self._writes))
        return int((await self._client.apply(CONFIGMAPS, body))["metadata"]["resourceVersion"])

    async def write_until(self, version: int, known: dict[int, str]) -> list[str]:
        """Write up to a version, each time to whom the next one was given before; returns who got theirs again."""
        again: list[str] = []
        (at,) = await self.write("filler")
        while at < version:
            name = known.get(at + 1, "filler")
            (at,) = await self.write(name)
            if known.get(at) == name:
                again.append(name)
        return again


@pytest.mark.parametrize("kind", ["behind", "raised", pytest.param("caught-up", marks=pytest.mark.full)])
async def test_the_mirror_equals_the_restored_server(restorable: Cluster, kind: str, report: SuiteReport) -> None:
    config, kept = load_config(restorable.kubeconfig), restorable.folder / f"{kind}.db"
    async with (
        Gate(restorable.port) as gate,
        Client.connect(through(gate, config)) as client,
        Client.connect(config) as direct,
    ):
        store, scribe = Store(CONFIGMAPS), Scribe(direct)
        await scribe.write("kept", "changed", "deleted", *TWICE)
        before = await listed(direct, store, NAMESPACE, SELECTOR)
        reflector = Reflector(client, CONFIGMAPS, store, namespace=NAMESPACE, labels=SELECTOR, settings=SETTINGS)
        running = asyncio.create_task(reflector.run())

        async def is_equal() -> bool:
            return contents(store) == contents(await listed(direct, store, NAMESPACE, SELECTOR))

        await asyncio.to_thread(backup.save, restorable, kept)
        await scribe.write(*["filler"] * ROOM)
        known = dict(zip(await scribe.write(*TWICE), TWICE, strict=True))
        await direct.delete(CONFIGMAPS, "deleted", NAMESPACE)
        await scribe.write("changed", "made", *["filler"] * ROOM)
        await until(is_equal, "the mirror before the restore")
        seen = store.observed

        gate.cut()
        await asyncio.to_thread(backup.restore, restorable, kept, bump=BUMP if kind == "raised" else 0)
        assert contents(await listed(direct, store, NAMESPACE, SELECTOR)) == contents(before)
        (version,) = await scribe.write("kept")
        assert version > BUMP if kind == "raised" else version < min(known)
        if kind != "raised":
            assert await scribe.write_until(max(known), known), "a version was given twice"
        if kind == "caught-up":
            await scribe.write_until(seen + 1, {})
            await asyncio.to_thread(restorable.kill, "kube-apiserver")  # its cache has all that the mirror missed
            restorable.revive("kube-apiserver")
            await asyncio.to_thread(restorable.wait_ready)

        assert not await is_equal()
        gate.mend()
        began = time.monotonic()
        await until(is_equal, "the mirror after the restore")
        report.figure(f"restored_{kind}_seconds", time.monotonic() - began)
        (version,) = await scribe.write("after")
        await until(lambda: store.resource_version(Key(NAMESPACE, "after")) == version, "a write after the restore")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
