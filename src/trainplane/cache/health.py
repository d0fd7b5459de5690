"""Whether a process is ready (`GET /ready`, as the reference answers) and its figures (`GET /metrics`)."""

from __future__ import annotations

import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from trainplane.cache.meter import Sample, exposition

if TYPE_CHECKING:
    from collections.abc import Callable


class Health(ThreadingHTTPServer):
    """Answers probes and scrapes, and nothing else."""

    daemon_threads = True

    def __init__(
        self, host: str, port: int, ready: Callable[[], bool], samples: Callable[[], list[Sample]] = list
    ) -> None:
        self.ready, self.samples = ready, samples
        super().__init__((host, port), _Answer)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Answer(BaseHTTPRequestHandler):
    server: Health
    timeout = 10

    def do_GET(self) -> None:
        """Answer a probe or a scrape."""
        if self.path == "/ready":
            ready = self.server.ready()
            status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
            self._answer(status, "ready" if ready else "not ready")
        elif self.path == "/metrics":
            first = Sample("ready", "gauge", "Whether everything can be had here.", self.server.ready())
            self._answer(HTTPStatus.OK, exposition([first, *self.server.samples()]))
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _answer(self, status: HTTPStatus, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing of probes."""
