"""A mirror of metadata alone, over HTTP."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
import pytest

from trainplane.kube.metadataonly import MetadataOnly
from trainplane.kube.projection import METADATA
from trainplane.kube.reflector import Reflector
from trainplane.kube.resource import CONFIG_MAPS, Key
from trainplane.kube.store import Store
from trainplane.kube.testing.faults import Refuse
from trainplane.kube.testing.server import FakeServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

A, B = Key("team", "a"), Key("team", "b")


@asynccontextmanager
async def mirrored(server: FakeServer) -> AsyncIterator[Store]:
    store = Store(CONFIG_MAPS, METADATA)
    async with server.client() as client:
        reflector = Reflector(MetadataOnly(client), CONFIG_MAPS, store)
        task = asyncio.create_task(reflector.run())
        await asyncio.wait_for(reflector.synced.wait(), 20)
        yield store
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("streams", [True, False])
async def test_metadata_comes_and_data_does_not(streams: bool) -> None:
    async with FakeServer() as server:
        if not streams:
            server.add_fault(Refuse(code=422, verb="watch", times=1))
        server.put(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "team"}, "data": {"password": "hunter2"}})
        async with mirrored(server) as store:
            assert store.keys() == [A]
            server.put(CONFIG_MAPS, {"metadata": {"name": "b", "namespace": "team"}, "data": {"password": "hunter2"}})
            server.remove(CONFIG_MAPS, "a", "team")
            async with asyncio.timeout(20):
                while store.keys() != [B]:  # noqa: ASYNC110 what is waited for has no event
                    await asyncio.sleep(0.005)
            tree = msgspec.json.decode(store.get(B) or b"")
            assert tree["metadata"]["name"] == "b"
            assert "data" not in tree
        asked = {one.verb: one.headers["Accept"] for one in server.requests}
        assert asked["watch"].startswith("application/json;as=PartialObjectMetadata;")
        assert streams or asked["list"].startswith("application/json;as=PartialObjectMetadataList;")
