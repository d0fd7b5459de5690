"""A backend before a fake API server, and pods there that print."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.unit.client.reading.documents import NAMESPACE, condition, ended, pod, train_job
from trainplane.client.backends.kubernetes import KubernetesBackend
from trainplane.client.types.backends import KubernetesBackendConfig
from trainplane.kube.resource import Key
from trainplane.resources import PODS, TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.client.types.jobs import LogLine
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.testing.podlogs import ContainerLogs
    from trainplane.kube.testing.server import FakeServer

Tree = dict[str, Any]
SECOND = 1_000_000_000
START = 1_800_000_000 * SECOND
PATIENCE = 60
"""Seconds for what must happen: for a bug, not for pacing."""


class Stage:
    """What tests do to the server, and a reader of logs."""

    def __init__(self, server: FakeServer, client: Client, clock: Clock | None = None) -> None:
        self.server = server
        self.client = client
        self.backend = KubernetesBackend(KubernetesBackendConfig(namespace=NAMESPACE), client=client, clock=clock)
        self.lines: list[LogLine] = []
        self._clock = START

    def job(self, *conditions: Tree, name: str = "a", **others: Any) -> None:
        self.server.put(TRAIN_JOBS, train_job(name, conditions=conditions, **others))

    def pod(self, index: int = 0, phase: str = "Running", **others: Any) -> ContainerLogs:
        """Put a pod there, or change it; returns its log."""
        tree = pod(index, phase, **others)
        self.server.put(PODS, tree)
        container = tree["spec"]["containers"][0]["name"]
        return self.server.pods.containers[Key(NAMESPACE, tree["metadata"]["name"]), container]

    def remove(self, index: int = 0, **others: Any) -> None:
        self.server.remove(PODS, pod(index, **others)["metadata"]["name"], NAMESPACE)

    def print(self, log: ContainerLogs, *texts: str) -> None:
        """Let a container print lines, each later than all printed before."""
        for text in texts:
            self._clock += SECOND // 50
            log.write(self._clock, text.encode())

    def end(self, log: ContainerLogs, index: int = 0, code: int = 0, **others: Any) -> None:
        """Let a container end, and its pod with it."""
        log.end()
        phase = "Failed" if code else "Succeeded"
        self.pod(index, phase, state=ended(code), **others)

    def complete(self) -> None:
        self.job(condition("Complete"))

    def follow(self, *steps: str, **others: Any) -> asyncio.Task[None]:
        """Read a followed log in the background into `lines`."""

        async def read() -> None:
            async for line in self.backend.read_logs("a", list(steps) or None, follow=True, **others):
                self.lines.append(line)

        return asyncio.create_task(read())

    async def read(self, *steps: str, **others: Any) -> list[str]:
        return [str(line) async for line in self.backend.read_logs("a", list(steps) or None, follow=False, **others)]

    @property
    def shown(self) -> list[str]:
        return [str(line) for line in self.lines]

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():  # noqa: ASYNC110 what is waited for tells nobody
                await asyncio.sleep(0.005)
