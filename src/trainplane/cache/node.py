"""One pod of a cache in a cluster: the head is pod 0 of an indexed Job, all others are workers, one alone is both.

Every pod answers probes on the port that everybody knows and serves rows on another. Pods start in any order: a worker
asks for its head until its name is there, and the head expects each worker by its name.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

from trainplane.cache.errors import InvalidError
from trainplane.cache.front import Behind, Front
from trainplane.cache.head import Head
from trainplane.cache.health import Health
from trainplane.cache.opening import Access, HeadLine
from trainplane.cache.serving import Door
from trainplane.cache.settings import read_source
from trainplane.cache.sources import plan
from trainplane.cache.worker import HEARTBEAT, Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trainplane.cache.meter import Sample
    from trainplane.cache.settings import Place, Settings

_SELF: Final = "127.0.0.1"
_SHORT: Final = 0.1


def run(
    settings: Settings, place: Place, env: Mapping[str, str], stop: threading.Event, say: Callable[[str], None]
) -> None:
    """Run this pod's part until `stop`, or until nobody has read for as long as it is told."""
    if place.index:
        _follow(settings, place, env, stop, say)
    else:
        _lead(settings, place, env, stop, say)


def _lead(
    settings: Settings, place: Place, env: Mapping[str, str], stop: threading.Event, say: Callable[[str], None]
) -> None:
    manifest = plan(read_source(env), env)
    # Behind the front nobody else reaches it, so TLS ends there; the token is asked for here.
    inner = Door(_SELF, 0, token=settings.door.token)
    with ExitStack() as running:
        head = running.enter_context(
            Head(manifest, settings.signer, inner, replicas=settings.replicas, expected=place.workers)
        )
        words = rows = Behind(head.port)
        samples = [lambda: head.samples]
        if place.size == 1:
            worker = _worker(settings, place, env)
            running.callback(worker.close)
            line = HeadLine(f"grpc://{_SELF}:{head.port}", Access(token=settings.door.token))
            threading.Thread(target=worker.serve_until, args=(line, stop), daemon=True).start()
            rows = _behind(settings, worker)
            samples.append(lambda: worker.samples)
        _listen(running, settings, words, rows, lambda: head.status.ready, *samples)
        say(f"head of {manifest.name[:12]}: {manifest.rows} rows in {len(manifest.fragments)} files")
        _until_idle(head, place.idle, stop)
        stop.set()


def _follow(
    settings: Settings, place: Place, env: Mapping[str, str], stop: threading.Event, say: Callable[[str], None]
) -> None:
    if not settings.head:
        raise InvalidError("HEAD_ADDRESS is not set", "name the head: HOST:PORT")
    with ExitStack() as running:
        worker = _worker(settings, place, env)
        running.callback(worker.close)
        behind = _behind(settings, worker)
        _listen(running, settings, behind, behind, lambda: worker.status.ready, lambda: worker.samples)
        say(f"worker {worker.name}: rows at {worker.location}")
        worker.serve_until(HeadLine(settings.head, settings.access), stop)


def _worker(settings: Settings, place: Place, env: Mapping[str, str]) -> Worker:
    door = settings.door
    rows = Door(door.host, place.data_port, door.certificate, door.key, door.token)
    scheme = rows.location.partition("://")[0]
    location = settings.location or f"{scheme}://{place.address}"
    return Worker(
        env.get("WORKER_NAME") or place.host, settings.disk, settings.signer, rows, env=env, location=location
    )


def _behind(settings: Settings, worker: Worker) -> Behind:
    if not settings.door.certificate:
        return Behind(worker.port)
    host = worker.location.partition("://")[2].rpartition(":")[0]
    return Behind(worker.port, settings.access.roots or settings.door.certificate, host)


def _listen(
    running: ExitStack,
    settings: Settings,
    words: Behind,
    rows: Behind,
    ready: Callable[[], bool],
    *samples: Callable[[], list[Sample]],
) -> None:
    """Answer on the ports that everybody knows."""
    running.enter_context(Front(settings.door, words=words, rows=rows, ready=ready))
    figures = partial(_together, samples)
    running.enter_context(Health(settings.door.host, settings.health_port, ready, figures))


def _together(samples: Sequence[Callable[[], list[Sample]]]) -> list[Sample]:
    return [sample for some in samples for sample in some()]


def _until_idle(head: Head, seconds: int, stop: threading.Event) -> None:
    """Wait until told to end, or until nobody has read for so long; then tell the workers."""
    while not stop.wait(min(seconds / 4, 5.0) if seconds else None):
        if head.idle >= seconds:
            head.end()
            until = time.monotonic() + 3 * HEARTBEAT
            while not head.ended and time.monotonic() < until:
                stop.wait(_SHORT)
            return
