"""`python -m trainplane.cache head|worker HOST PORT`: one process of a cache, as the reference's images are called.

It ends with 0 when it is told to, with 75 for what may pass with time, with 1 for what a person must mend. Whether it
is ready is answered at `GET /ready` on HEALTH_PORT, as by the reference.
"""

from __future__ import annotations

import signal
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final

from trainplane.cache.errors import CacheError, InvalidError
from trainplane.cache.head import Head
from trainplane.cache.opening import HeadLine
from trainplane.cache.settings import Settings, read_settings, read_source
from trainplane.cache.sources import reader
from trainplane.cache.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_TEMPORARY: Final = 75
_USAGE: Final = "usage: python -m trainplane.cache head|worker HOST PORT"


def main(arguments: Sequence[str], env: Mapping[str, str]) -> int:
    """Run a head or a worker until it is told to end."""
    try:
        if len(arguments) != 3 or arguments[0] not in {"head", "worker"}:
            raise InvalidError("which process, and where", _USAGE)
        settings = read_settings(arguments[1], arguments[2], env)
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        (_head if arguments[0] == "head" else _worker)(settings, env, stop)
    except CacheError as error:
        sys.stderr.write(f"{error.cause}: {error.line}\n")
        return _TEMPORARY if error.retryable else 1
    return 0


def _head(settings: Settings, env: Mapping[str, str], stop: threading.Event) -> None:
    source = read_source(env)
    manifest = reader(source, env).plan(source)
    with Head(manifest, settings.signer, settings.door, replicas=settings.replicas) as head:
        _say(f"head of {manifest.name[:12]}: {manifest.rows} rows in {len(manifest.fragments)} files, port {head.port}")
        with _Health(settings, lambda: head.status.ready):
            stop.wait()


def _worker(settings: Settings, env: Mapping[str, str], stop: threading.Event) -> None:
    if not settings.head:
        raise InvalidError("HEAD_ADDRESS is not set", "name the head: HOST:PORT")
    worker = Worker(settings.name, settings.disk, settings.signer, settings.door, env=env, location=settings.location)
    _say(f"worker {settings.name}: port {worker.port}")
    line = HeadLine(settings.head, settings.access)
    with _Health(settings, lambda: worker.status.ready):
        worker.serve_until(line, stop)
    worker.close()


class _Health(ThreadingHTTPServer):
    """Says whether a process is ready, and nothing else."""

    daemon_threads = True

    def __init__(self, settings: Settings, ready: Callable[[], bool]) -> None:
        self.ready = ready
        super().__init__((settings.door.host, settings.health_port), _Answer)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Answer(BaseHTTPRequestHandler):
    server: _Health
    timeout = 10

    def do_GET(self) -> None:
        """Answer a probe."""
        if self.path != "/ready":
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        ready = self.server.ready()
        content = b"ready" if ready else b"not ready"
        self.send_response(HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing of probes."""


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
