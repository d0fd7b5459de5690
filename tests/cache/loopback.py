"""A whole cache on loopback, in this process: a head and some workers that can be stopped and begun again."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from trainplane.cache.head import Head
from trainplane.cache.opening import Access, HeadLine
from trainplane.cache.reading import Reading, Share
from trainplane.cache.serving import Door
from trainplane.cache.sources import reader
from trainplane.cache.tickets import Signer
from trainplane.cache.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from trainplane.cache.manifest import Manifest, Source

KEY = b"a key of thirty-two random bytes"


class Cluster:
    """A head and its workers."""

    def __init__(self, manifest: Manifest, root: Path, count: int, env: Mapping[str, str], **door: Any) -> None:
        self.manifest, self._root, self._env, self._door = manifest, root, env, door
        self.signer = Signer(KEY)
        self.access = Access(token=door.get("token", b""), roots=door.get("certificate", b""))
        self.head = Head(manifest, self.signer, Door(**door))
        self.workers: dict[str, Worker] = {}
        self._stops: dict[str, threading.Event] = {}
        self._threads: dict[str, threading.Thread] = {}
        for number in range(count):
            self.start(f"worker-{number}")

    @property
    def address(self) -> str:
        scheme = "grpc+tls" if self._door.get("certificate") else "grpc"
        return f"{scheme}://localhost:{self.head.port}"

    def start(self, name: str, port: int = 0) -> None:
        worker = Worker(name, self.disk(name), self.signer, Door(**{**self._door, "port": port}), env=self._env)
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
        self._threads.pop(name).join(30)
        worker.close()
        return port

    def restart_head(self, manifest: Manifest | None = None) -> None:
        """End the head and begin another on its port, which knows nothing."""
        port = int(self.head.port)
        self.head.shutdown()
        self.head = Head(manifest or self.manifest, self.signer, Door(**{**self._door, "port": port}))

    def wait_ready(self, seconds: float = 60) -> None:
        """Wait until every row can be had from every worker that should hold it."""
        end = time.monotonic() + seconds
        count = sum(1 for fragment in self.manifest.fragments if fragment.rows)
        while not (
            self.head.status.ready
            and sum(worker.status.held for worker in self.workers.values()) >= count * min(2, len(self.workers))
        ):
            assert time.monotonic() < end, self.head.status
            time.sleep(0.02)

    def reading(self, rank: int = 0, world: int = 1, part: int = 0, parts: int = 1, **options: Any) -> Reading:
        return Reading(HeadLine(self.address, self.access), Share(rank, world, part, parts), **options)

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
