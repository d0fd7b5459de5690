"""versitygw, a real S3 server on a folder, and a line to it that breaks."""

from __future__ import annotations

import math
import os
import random
import socket
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from obstore.store import S3Store

from lab.engines import binary
from lab.errors import BuildError
from lab.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import Self

KEY, SECRET = "test-access-key", "test-secret-key-1234"


@dataclass
class Store:
    """A running server with a bucket of the name `bucket`."""

    endpoint: str
    bucket: S3Store
    root: Path
    """Where the server keeps its buckets."""

    @property
    def env(self) -> dict[str, str]:
        """What a step needs to read it."""
        return {"ENDPOINT": self.endpoint, "ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET, "REGION": "us-east-1"}


@contextmanager
def serving(root: Path) -> Iterator[Store]:
    """Serve a folder; the test is skipped where the engine is not built."""
    try:
        program = binary("versitygw")
    except BuildError as error:
        pytest.skip(str(error))
    (root / "bucket").mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [program, "--port", f"127.0.0.1:{port}", "--quiet", "--keep-alive", "posix", str(root)],
        env={**os.environ, "ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    endpoint = f"http://127.0.0.1:{port}"
    bucket = S3Store(
        "bucket",
        config={"access_key_id": KEY, "secret_access_key": SECRET, "endpoint": endpoint, "region": "us-east-1"},
        client_options={"allow_http": True},
    )
    try:
        _wait(port)
        yield Store(endpoint, bucket, root)
    finally:
        process.kill()
        process.wait()


def _wait(port: int) -> None:
    def listens() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            return False
        return True

    wait_for("versitygw", listens, seconds=60)


class BadLine:
    """A port before a server whose connections break after as many bytes as a seed says; some are never cut.

    Bytes from the server count; with `both` those to it as well, and then some connections are slow, some are answered
    503, and some change a byte on the way to the server.
    """

    kinds: Sequence[str] = ("fine", "fine", "fine", "busy", "slow", "rotten")
    budgets: Sequence[int] = (0, 300, 5_000, 200_000, 900_000, 1 << 40)
    bad: float = math.inf
    """Connections that are drawn; those after them are fine. For a line whose every connection breaks something."""

    def __init__(self, endpoint: str, seed: int, *, both: bool = False) -> None:
        host, _, port = endpoint.removeprefix("http://").partition(":")
        self._to = host, int(port)
        self._both = both
        self._chance = random.Random(seed)  # noqa: S311 no secret
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cuts = 0
        """Connections that something happened to."""
        self.connections = 0
        self.carried = 0
        """Bytes that went to the server."""

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self.connections += 1
                kind = self._chance.choice(self.kinds) if self._both else ""
                budget = self._chance.choice(self.budgets)
                if self.connections > self.bad:
                    kind, budget = "fine", 1 << 40
                threading.Thread(target=self._carry, args=(near, budget, kind), daemon=True).start()

    def _carry(self, near: socket.socket, budget: int, kind: str) -> None:
        with near, suppress(OSError), socket.create_connection(self._to) as far:
            if kind == "busy":
                self.cuts += 1
                near.recv(65536)
                near.sendall(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                near.shutdown(socket.SHUT_RDWR)
                return
            up = (budget * 8 if self._both else 1 << 40), kind
            threading.Thread(target=self._pour, args=(near, far, *up), daemon=True).start()
            self._pour(far, near, budget)
            # Closed while another thread still reads: only a shutdown tells the other side.
            far.shutdown(socket.SHUT_RDWR)
            near.shutdown(socket.SHUT_RDWR)

    def _pour(self, source: socket.socket, target: socket.socket, budget: int, kind: str = "") -> None:
        with suppress(OSError):
            while piece := source.recv(65536):
                if kind:
                    self.carried += len(piece)
                    time.sleep(0.002 if kind == "slow" else 0)
                if kind == "rotten" and len(piece) == 65536:
                    # The middle of a full piece is of a body, not of headers.
                    self.cuts += 1
                    piece = piece[:32768] + bytes([piece[32768] ^ 1]) + piece[32769:]
                    kind = "rotted"
                target.sendall(piece[:budget])
                budget -= len(piece)
                if budget <= 0:
                    self.cuts += 1
                    source.shutdown(socket.SHUT_RDWR)
                    target.shutdown(socket.SHUT_RDWR)
                    return
            target.shutdown(socket.SHUT_WR)
