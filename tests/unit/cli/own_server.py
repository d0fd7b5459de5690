"""A cluster with one namespace, answering from a thread of its own as clusters do, and commands that are sent there."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import yaml

from tests.unit.client.reading.documents import NAMESPACE
from trainplane.cli import main
from trainplane.kube.testing.server import FakeServer
from trainplane.resources import TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from trainplane.kube.resource import Key, Resource

Tree = dict[str, Any]


class OwnServer:
    """See the module's docstring."""

    def __init__(self, folder: Path) -> None:
        self.server = FakeServer()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._run(self.server.start())
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(
            yaml.safe_dump(
                {
                    "current-context": "c",
                    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": NAMESPACE}}],
                    "clusters": [{"name": "c", "cluster": {"server": self.server.url}}],
                    "users": [{"name": "u", "user": {"token": "t"}}],
                }
            )
        )

    def put(self, resource: Resource, tree: Tree) -> None:
        self.change(lambda: self.server.put(resource, tree))

    def jobs(self) -> dict[str, Tree]:
        """Return the TrainJobs by name."""
        found: dict[Key, Tree] = {}
        self.change(lambda: found.update(self.server.objects(TRAIN_JOBS)))
        return {key.name: tree for key, tree in found.items()}

    def command(self, *words: str) -> int:
        """Run a command as a person with this kubeconfig."""
        return main([*words, "--kubeconfig", str(self.kubeconfig)])

    def change(self, work: Callable[[], object]) -> None:
        """Do something in the server's own thread."""

        async def done() -> None:
            work()

        self._run(done())

    def close(self) -> None:
        self._run(self.server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)
