"""A reflector at work on a model cluster: what its tests have in common."""

# A double has the signature of what it stands for.
# ruff: noqa: ARG002
from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.kube.loop.mirror import Mirror
from tests.unit.kube.loop.model_cluster import ModelCluster
from tests.unit.kube.loop.objects import THINGS, seeded
from trainplane.kube.observer import Unobserved
from trainplane.kube.reflector import Reflector, ReflectorSettings
from trainplane.kube.store import Store
from trainplane.kube.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainplane.kube.resource import Resource


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
        assert {key: self.store.decode(key, dict) for key in self.store} == self.cluster.objects
        assert self.mirror.of(self.store)


def cluster_of(names: str, **options: Any) -> ModelCluster:
    cluster = ModelCluster(**options)
    for name in names:
        cluster.put(name)
    return cluster
