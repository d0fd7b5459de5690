"""What several tests of this folder need."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from trainplane.kube.resource import PODS

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from trainplane.kube.testing.server import FakeServer


class JumpingClock:
    """A clock on which every sleep takes no time and is written down."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.elapsed = 0.0

    def monotonic(self) -> float:
        return self.elapsed

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.elapsed)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.elapsed += seconds
        await asyncio.sleep(0)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:  # noqa: ARG002 a Clock's signature
        return nullcontext()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something in another task, process or connection that has no event of its own to wait for."""
    while not condition():  # noqa: ASYNC110 the condition is not ours to signal
        await asyncio.sleep(0.001)


def pod(name: str, namespace: str = "default", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, **more.pop("metadata", {})}, **more}


def fill(server: FakeServer, count: int) -> None:
    for number in range(count):
        server.put(PODS, pod(f"pod-{number:04d}", metadata={"labels": {"parity": ["even", "odd"][number % 2]}}))
