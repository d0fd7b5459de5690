"""Servers on loopback that give files away, well or badly: a web server, and a hub on top of it.

Each request asks `Faults` what goes wrong with it. Everything that was asked is kept, with its headers, so that a test
can say what a client sent to whom.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

PASSING = ("cut", "slow", "busy", "broken", "reset")
"""Faults that another try mends."""
_WITHOUT_END = {"endless": 65536, "drip": 100}
"""Faults that never stop, with the bytes of a write."""
_SHORT: dict[str, Callable[[int], int]] = {
    "cut": lambda size: size // 2,
    "crumb": lambda _: 1000,
    "silent": lambda _: 0,
}
"""Faults that break off, with the bytes that still come."""
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Asked:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    sent: int = 0
    """Bytes of a body that were sent."""


@dataclass
class Site:
    """What a server has, and how it behaves."""

    files: dict[str, bytes] = field(default_factory=dict)
    fault: Callable[[Asked], str] = lambda _: ""
    token: str = ""
    """What must be sent as a bearer's token; empty for nothing."""
    answers: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    """Answers to paths, as they are."""
    once: dict[str, list[tuple[int, dict[str, str], bytes]]] = field(default_factory=dict)
    """Answers that are each given once, before any other."""
    ranges: bool = True
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    @property
    def sent(self) -> int:
        """Bytes of bodies."""
        return sum(asked.sent for asked in self.asked)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what these tests are about."""


@contextmanager
def serving(
    site: Site,
    kind: type[Handler] | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: ssl.SSLContext | None = None,
) -> Iterator[Site]:
    """Serve a site while the context lasts; over TLS as `localhost`."""
    handler = type("Bound", (kind or Handler,), {"site": site})
    server = _Server((host, port), handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    site.url = f"{'https://localhost' if tls else f'http://{host}'}:{server.server_address[1]}"
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Handler(BaseHTTPRequestHandler):
    """A web server with ranges, ETags and bad days."""

    protocol_version = "HTTP/1.1"
    site: Site
    asked: Asked

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 the base's name
        """Say nothing."""

    def do_GET(self) -> None:
        self.asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()})
        self.site.asked.append(self.asked)
        if self.site.token and self.asked.headers.get("authorization") != f"Bearer {self.site.token}":
            self.answer(401, {}, b"a token is wanted")
        elif self.site.once.get(self.path):
            self.answer(*self.site.once[self.path].pop())
        elif self.path in self.site.answers:
            self.answer(*self.site.answers[self.path])
        else:
            self.serve(self.path)

    def serve(self, path: str) -> None:
        name = unquote(urlsplit(path).path).removeprefix("/")
        if name not in self.site.files:
            self.answer(404, {}, b"no such file")
            return
        self.send_file(self.site.files[name])

    def send_file(self, content: bytes) -> None:
        fault = self.site.fault(self.asked)
        if fault in ("busy", "broken"):
            self.answer(503 if fault == "busy" else 500, {"Retry-After": "0"}, b"")
            return
        if fault == "reset":
            self.close_connection = True
            return
        start, stop, partial = 0, len(content), False
        asked = self.asked.headers.get("range", "")
        if self.site.ranges and asked.startswith("bytes="):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, stop, partial = int(first), min(int(last) + 1, len(content)), True
        self.send_body(content[start:stop], len(content), start, fault, partial=partial)

    def send_body(self, body: bytes, total: int, start: int, fault: str, *, partial: bool) -> None:
        if fault == "rotten" and body:
            body = bytes([body[0] ^ 1]) + body[1:]
        self.send_response(206 if partial else 200)
        self.send_header("ETag", f'"{self.etag(fault)}"')
        length = len(body)
        if fault == "longer":
            length, body = length + 1000, body + b"x" * 1000
        if fault == "endless":
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(length))
        if partial:
            shift = 1 if fault == "elsewhere" else 0
            total += 5 if fault == "grown" else 0
            self.send_header("Content-Range", f"bytes {start + shift}-{start + shift + len(body) - 1}/{total}")
        self.end_headers()
        time.sleep({"slow": 0.02, "silent": 3}.get(fault, 0))
        if fault in _SHORT:
            body = body[: _SHORT[fault](len(body))]
            self.close_connection = True
        while fault in _WITHOUT_END:
            self.write(b"x" * _WITHOUT_END[fault])
            time.sleep(0.05 if fault == "drip" else 0)
        self.write(body)

    def write(self, body: bytes) -> None:
        self.wfile.write(body)
        self.asked.sent += len(body)

    def etag(self, fault: str) -> str:
        name = unquote(urlsplit(self.path).path).removeprefix("/")
        return "another" if fault == "replaced" else hashlib.md5(name.encode()).hexdigest()  # noqa: S324 a name's mark

    def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class HubHandler(Handler):
    """What huggingface_hub asks a hub: which commit a revision is, which files it has; and where a file lies.

    Files of `site.files` are named `owner/name/path`. Those that end with `.safetensors` are large ones: they are
    redirected to `cdn` and have a SHA-256; others have git's checksum.
    """

    def serve(self, path: str) -> None:
        parts = [unquote(part) for part in urlsplit(path).path.strip("/").split("/")]
        match parts:
            case ["api", "models" | "datasets", *repository, "revision", revision]:
                self.revision("/".join(repository), revision)
            case ["api", "models" | "datasets", *repository, "tree", _]:
                self.tree("/".join(repository))
            case ["api", "models" | "datasets", *repository]:
                self.revision("/".join(repository), "main")
            case _ if "resolve" in parts:
                at = parts.index("resolve")
                repository = [part for part in parts[:at] if part != "datasets"]
                name = "/".join([*repository, *parts[at + 2 :]])
                if name.endswith(".safetensors"):
                    location = f"{self.site.answers['cdn'][1]['url']}/{name}?signature=secret-of-the-cdn"
                    self.answer(302, {"Location": location}, b"")
                elif name in self.site.files:
                    self.send_file(self.site.files[name])
                else:
                    self.answer(404, {"X-Error-Code": "EntryNotFound"}, b"")
            case _:
                self.answer(404, {"X-Error-Code": "RepoNotFound"}, b"")

    def below(self, repository: str) -> dict[str, bytes]:
        return {
            name.removeprefix(f"{repository}/"): content
            for name, content in self.site.files.items()
            if name.startswith(f"{repository}/")
        }

    def revision(self, repository: str, revision: str) -> None:
        if not self.below(repository):
            self.answer(404, {"X-Error-Code": "RepoNotFound"}, b"{}")
        elif revision not in ("main", "v1", COMMIT):
            self.answer(404, {"X-Error-Code": "RevisionNotFound"}, b"{}")
        else:
            body = {"_id": "1", "id": repository, "sha": COMMIT, "private": False, "tags": [], "siblings": []}
            body |= {"downloads": 0, "likes": 0}
            self.answer(200, {"Content-Type": "application/json"}, json.dumps(body).encode())

    def tree(self, repository: str) -> None:
        """List the files in pages of two."""
        page = int(parse_qs(urlsplit(self.path).query).get("cursor", ["0"])[0])
        entries = [self.entry(name, content) for name, content in sorted(self.below(repository).items())]
        headers = {"Content-Type": "application/json"}
        if (page + 1) * 2 < len(entries):
            base = self.path.partition("?")[0]
            headers["Link"] = f'<{self.site.url}{base}?recursive=true&cursor={page + 1}>; rel="next"'
        self.answer(200, headers, json.dumps(entries[page * 2 : page * 2 + 2]).encode())

    def entry(self, name: str, content: bytes) -> dict[str, Any]:
        oid = hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()  # noqa: S324 git's own
        entry: dict[str, Any] = {"type": "file", "path": name, "size": len(content), "oid": oid}
        if name.endswith(".safetensors"):
            sha256 = hashlib.sha256(content).hexdigest()
            entry["lfs"] = {"oid": sha256, "size": len(content), "pointerSize": 134}
        return entry


@contextmanager
def hub(site: Site, cdn: Site, host: str = "127.0.0.1", port: int = 0) -> Iterator[Site]:
    """Serve a hub whose large files lie on another server."""
    with serving(cdn, host=host), serving(site, HubHandler, host=host, port=port):
        site.answers["cdn"] = (0, {"url": cdn.url}, b"")
        yield site


def seeded(seed: int, share: float, kinds: tuple[str, ...] = PASSING) -> Callable[[Asked], str]:
    """Return faults that strike a share of requests, the same ones for the same seed and order."""
    chance = random.Random(seed)  # noqa: S311 no secret

    def strike(_: Asked) -> str:
        return chance.choice(kinds) if chance.random() < share else ""

    return strike
