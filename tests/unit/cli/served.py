"""A cluster that answers a command from a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import yaml

from trainplane.cli import main
from trainplane.kube.testing.server import FakeServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trainplane.kube.resource import Resource

NAMESPACE = "vision"


class Served:
    """A fake API server, and commands with its kubeconfig."""

    def __init__(self, folder: Path, namespace: str = NAMESPACE) -> None:
        self.server = FakeServer()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._run(self.server.start())
        self.kubeconfig = folder / "config"
        context = {"cluster": "one", "user": "me", "namespace": namespace}
        self.kubeconfig.write_text(
            yaml.safe_dump(
                {
                    "current-context": "one",
                    "contexts": [{"name": "one", "context": context}],
                    "clusters": [{"name": "one", "cluster": {"server": self.server.url}}],
                    "users": [{"name": "me", "user": {}}],
                }
            )
        )

    def run(self, *words: str) -> int:
        """Run a command on the cluster and return its exit code."""
        return main([*words, "--kubeconfig", str(self.kubeconfig)])

    def put(self, resource: Resource, *trees: dict[str, Any]) -> None:
        """Store objects."""
        self.change(lambda: [self.server.put(resource, tree) for tree in trees])

    def change(self, work: Callable[[], object]) -> None:
        """Change what is stored, in the server's own thread."""

        async def changed() -> None:
            work()

        self._run(changed())

    def close(self) -> None:
        self._run(self.server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)
