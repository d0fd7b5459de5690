"""`python -m trainplane.cache head|worker HOST PORT`: one process of a cache, as the reference's images are called.

`python -m trainplane.cache node` is whichever of them a pod should be, as its environment says (`node`).

It ends with 0 when it is told to, with 75 for what may pass with time, with 1 for what a person must mend. A pod that
is told to end says 143 instead, and 0 when the cache is over: a Job puts another in the place of one that was drained,
and none in that of one that succeeded. Whether it is ready is answered at `GET /ready` on HEALTH_PORT, as by the
reference.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Final

from trainplane.cache.errors import CacheError, InvalidError
from trainplane.cache.head import Head
from trainplane.cache.health import Health
from trainplane.cache.opening import HeadLine
from trainplane.cache.settings import Settings, read_place, read_settings, read_source
from trainplane.cache.sources import plan
from trainplane.cache.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TEMPORARY: Final = 75
_USAGE: Final = "usage: python -m trainplane.cache head|worker HOST PORT, or node"
_TOLD: Final = 128 + signal.SIGTERM
_GRACE: Final = 5.0
"""Seconds that a plan or a segment under way may hold up the end: it is begun anew after a restart."""


def main(arguments: Sequence[str], env: Mapping[str, str]) -> int:
    """Run a part of a cache until it is told to end."""
    stop = threading.Event()
    try:
        match list(arguments):
            case ["head" | "worker" as part, host, port]:
                settings = read_settings(host, port, env)
                _hear_signals(stop)
                (_head if part == "head" else _worker)(settings, env, stop)
            case ["node"]:
                from trainplane.cache import node  # noqa: PLC0415 gRPC, which no other part needs

                place = read_place(env)
                settings = read_settings("0.0.0.0", str(place.port), env)  # noqa: S104 a pod's own network
                told = _hear_signals(stop, _TOLD)
                node.run(settings, place, env, stop, _say)
                return _TOLD if told.is_set() else 0
            case _:
                raise InvalidError("which process, and where", _USAGE)
    except CacheError as error:
        sys.stderr.write(f"{error.cause}: {error.line}\n")
        return _TEMPORARY if error.retryable else 1
    return 0


def _hear_signals(stop: threading.Event, code: int = 0) -> threading.Event:
    """Set `stop` when a signal says to end, and end with `code` soon after; return whether one has."""
    told = threading.Event()

    def end(*_: object) -> None:
        told.set()
        stop.set()
        last = threading.Timer(_GRACE, os._exit, (code,))
        last.daemon = True
        last.start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    return told


def _head(settings: Settings, env: Mapping[str, str], stop: threading.Event) -> None:
    manifest = plan(read_source(env), env)
    with Head(manifest, settings.signer, settings.door, replicas=settings.replicas) as head:
        _say(f"head of {manifest.name[:12]}: {manifest.rows} rows in {len(manifest.fragments)} files, port {head.port}")
        with Health(settings.door.host, settings.health_port, lambda: head.status.ready, lambda: head.samples):
            stop.wait()


def _worker(settings: Settings, env: Mapping[str, str], stop: threading.Event) -> None:
    if not settings.head:
        raise InvalidError("HEAD_ADDRESS is not set", "name the head: HOST:PORT")
    worker = Worker(
        settings.name,
        settings.disk,
        settings.signer,
        settings.door,
        env=env,
        location=settings.location,
        part_bytes=settings.part_bytes,
    )
    _say(f"worker {settings.name}: port {worker.port}")
    line = HeadLine(settings.head, settings.access)
    with Health(settings.door.host, settings.health_port, lambda: worker.status.ready, lambda: worker.samples):
        worker.serve_until(line, stop)
    worker.close()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
