"""A whole cache on loopback, in this process: a head and some workers that can be stopped and begun again."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.processes import wait_for
from trainplane.cache.head import Head
from trainplane.cache.opening import Access, HeadLine
from trainplane.cache.placement import REPLICAS, holders
from trainplane.cache.reading import Reading, Share
from trainplane.cache.serving import Door
from trainplane.cache.sources import reader
from trainplane.cache.tickets import Signer
from trainplane.cache.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from trainplane.cache.manifest import Manifest, Source

KEY = b"a key of thirty-two random bytes"


class Laggard(Worker):
    """A worker that lets callers wait for `lag` seconds."""

    lag = 0.0

    def do_get(self, context: Any, asked: Any) -> Any:
        """Answer late."""
        time.sleep(self.lag)
        return super().do_get(context, asked)


class Cluster:
    """A head and its workers. `skew` says by how many seconds a process's clock is off."""

    def __init__(self, manifest: Manifest, root: Path, count: int, env: Mapping[str, str], **door: Any) -> None:
        self.skew: dict[str, float] = {}
        self.manifest, self._root, self._env, self._door = manifest, root, env, door
        self.signer = Signer(KEY)
        self.access = Access(token=door.get("token", b""), roots=door.get("certificate", b""))
        self.head = Head(manifest, self.signer, Door(**door), clock=self._clock("head"))
        self.workers: dict[str, Laggard] = {}
        self._stops: dict[str, threading.Event] = {}
        self._threads: dict[str, threading.Thread] = {}
        for number in range(count):
            self.start(f"worker-{number}")

    @property
    def address(self) -> str:
        scheme = "grpc+tls" if self._door.get("certificate") else "grpc"
        return f"{scheme}://localhost:{self.head.port}"

    def start(self, name: str, port: int = 0) -> None:
        door = Door(**{**self._door, "port": port})
        worker = Laggard(name, self.disk(name), self.signer, door, env=self._env, clock=self._clock(name))
        if self._door.get("certificate"):
            worker.location = f"grpc+tls://localhost:{worker.port}"
        stop = threading.Event()
        line = HeadLine(self.address, self.access)
        thread = threading.Thread(target=worker.serve_until, args=(line, stop, 0.05), daemon=True)
        thread.start()  # before it is known: whoever knows a worker may stop it at once
        self.workers[name], self._stops[name], self._threads[name] = worker, stop, thread

    def disk(self, name: str) -> Path:
        """Return where a worker keeps its segments."""
        return self._root / name

    def stop(self, name: str) -> int:
        """Stop a worker at once; return the port that it had."""
        worker = self.workers.pop(name)
        self._stops.pop(name).set()
        port = int(worker.port)
        thread = self._threads.pop(name)
        thread.join(60)
        assert not thread.is_alive(), f"{name} did not end: a stream keeps it"
        worker.close()
        return port

    def wait_ended(self, name: str) -> None:
        """Wait until a worker has ended by itself."""
        self._threads[name].join(60)
        assert not self._threads[name].is_alive()

    def restart_head(self, manifest: Manifest | None = None) -> None:
        """End the head and begin another on its port, which knows nothing."""
        port = int(self.head.port)
        self.head.shutdown()
        door = Door(**{**self._door, "port": port})
        self.head = Head(manifest or self.manifest, self.signer, door, clock=self._clock("head"))

    def wait_ready(self, seconds: float = 60) -> None:
        """Wait until every row can be had from, or written to, every worker that should hold it."""
        wait_for("every row on every worker that should hold it", self._is_ready, seconds=seconds)

    def _is_ready(self) -> bool:
        return (
            self.head.status.ready
            and self.head.taking.keys() >= self.workers.keys()
            and all(self.placed(name) <= worker.held for name, worker in self.workers.items())
        )

    def placed(self, name: str) -> set[int]:
        """Return the fragments that a worker should hold; from when it was alone it may have more."""
        return {
            number
            for number, fragment in enumerate(self.manifest.fragments)
            if fragment.rows and name in holders(fragment.name, self.workers, REPLICAS)
        }

    def reading(self, rank: int = 0, world: int = 1, part: int = 0, parts: int = 1, **options: Any) -> Reading:
        return Reading(HeadLine(self.address, self.access), Share(rank, world, part, parts), **options)

    def _clock(self, name: str) -> Callable[[], float]:
        return lambda: time.time() + self.skew.get(name, 0.0)

    def close(self) -> None:
        for name in list(self.workers):
            self.stop(name)
        self.head.shutdown()


@contextmanager
def cluster(
    source: Source, root: Path, workers: int = 2, env: Mapping[str, str] | None = None, **door: Any
) -> Iterator[Cluster]:
    """Run a cache over a source."""
    manifest = reader(source, env or {}).plan(source)
    running = Cluster(manifest, root, workers, env or {}, **door)
    try:
        running.wait_ready()
        yield running
    finally:
        running.close()


def ids(reading: Reading, rows: int = 700) -> list[int]:
    """Return the ids of the rest of an epoch, checking that the other columns are of the same rows."""
    found: list[int] = []
    for batch in reading.batches(rows):
        own = batch["id"].to_numpy()
        assert np.array_equal(batch["x"].flatten().to_numpy().reshape(len(own), -1)[:, 0], own.astype(np.float32))
        assert batch["text"][0].as_py() == f"row {own[0]}"
        found += own.tolist()
    return found
