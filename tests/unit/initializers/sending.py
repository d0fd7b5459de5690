"""What sends outputs, under tests: the program in this process, what a destination holds, and a status server."""

from __future__ import annotations

import hashlib
import io
import json
import ssl
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from lab.processes import wait_for
from trainplane.initializers.console import Console
from trainplane.initializers.outputs.manifest import CHECKPOINT, FINAL
from trainplane.initializers.outputs.program import run
from trainplane.initializers.paths import OURS
from trainplane.initializers.secrets import Secrets
from trainplane.kube.pki import CertificatePolicy, renew

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

TOKEN = "token-of-the-status-server"
QUICK = {"RETRY_SECONDS": "5", "STALL_SECONDS": "1", "SETTLE_SECONDS": "1", "OUTPUT_WAIT_SECONDS": "3"}


@dataclass
class Ended:
    """How a sender ended and what it said."""

    code: int
    said: str
    message: dict[str, Any]

    @property
    def output(self) -> str:
        return str(self.message.get("output"))

    @property
    def cause(self) -> str:
        return str(self.message.get("cause", ""))


class Output:
    """A folder that training writes to, and the sender in this process."""

    def __init__(self, tmp: Path) -> None:
        self.folder = tmp / "workspace" / "output"
        self.folder.mkdir(parents=True)
        self.log = tmp / "termination-log"

    def write(self, files: Mapping[str, bytes]) -> None:
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def content(self) -> dict[str, bytes]:
        """What training wrote."""
        return contents(self.folder)

    def send(self, uri: str, env: Mapping[str, str] | None = None, *, now: bool = True) -> Ended:
        self.log.write_text("")
        out = io.StringIO()
        given = {"OUTPUT_URI": uri, **QUICK, **(env or {})}
        code = run(given, self.folder, Console(Secrets(given), out, out, self.log), now=now)
        text = self.log.read_text()
        assert len(text.encode()) <= 4096
        return Ended(code, out.getvalue(), json.loads(text) if text else {})


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files of a folder, without state of ours."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.relative_to(folder).parts[0] != OURS
    }


def check(there: Mapping[str, bytes], source: Mapping[str, bytes]) -> dict[str, Any] | None:
    """Check that a destination with a final manifest has all of the source; return the manifest, None without one.

    Checkpoints' manifests are held to the same: what they list is there, letter by letter.
    """
    for name, text in there.items():
        if name.rpartition("/")[2] == CHECKPOINT:
            _hold(json.loads(text), {path.removeprefix(name[: -len(CHECKPOINT)]): body for path, body in there.items()})
    if FINAL not in there:
        return None
    manifest: dict[str, Any] = json.loads(there[FINAL])
    _hold(manifest, there)
    listed = {file["path"] for file in manifest["files"]}
    assert listed == set(source)
    assert {path: there[path] for path in listed} == dict(source)
    return manifest


def _hold(manifest: Mapping[str, Any], there: Mapping[str, bytes]) -> None:
    for file in manifest["files"]:
        assert len(there[file["path"]]) == file["size"]
        assert hashlib.sha256(there[file["path"]]).hexdigest() == file["sha256"]


@dataclass
class Status:
    """What the operator's status server says of a training; it keeps a question until the answer changes."""

    state: str = "running"
    asked: list[str] = field(default_factory=list)
    fault: Callable[[], tuple[int, bytes] | None] = lambda: None
    env: dict[str, str] = field(default_factory=dict)
    changed: threading.Event = field(default_factory=threading.Event)

    def end(self, state: str) -> None:
        self.state = state
        self.changed.set()


@contextmanager
def status_server(tmp: Path, status: Status) -> Iterator[Status]:
    """Serve a training's state over TLS."""
    material, _ = renew(None, CertificatePolicy(("localhost",)), datetime.now(UTC))
    (tmp / "tls.pem").write_bytes(material.tls_key + material.tls_crt)
    (tmp / "ca.pem").write_bytes(material.ca_crt)
    (tmp / "token").write_text(TOKEN)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp / "tls.pem")

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 the base's name
            """Say nothing."""

        def do_GET(self) -> None:
            status.asked.append(self.path)
            fault = status.fault()
            if fault is not None:
                self._answer(*fault)
            elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self._answer(401, b"")
            else:
                status.changed.wait(min(float(parse_qs(urlsplit(self.path).query)["wait"][0]), 5))
                self._answer(200, json.dumps({"training": status.state}).encode())

        def _answer(self, code: int, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that went away is no fault."""

    server = Server(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    status.env = {
        "KUBEFLOW_TRAINER_SERVER_URL": f"https://localhost:{server.server_address[1]}/apis/x/trainjobs/tune/status",
        "KUBEFLOW_TRAINER_SERVER_CA_CERT": str(tmp / "ca.pem"),
        "KUBEFLOW_TRAINER_SERVER_TOKEN": str(tmp / "token"),
    }
    try:
        yield status
    finally:
        status.changed.set()
        server.shutdown()
        server.server_close()
        thread.join()


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait for a condition."""
    wait_for("the condition", lambda: bool(condition()), seconds=seconds)
