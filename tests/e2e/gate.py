"""A gate before the API server: it counts an operator's writes, and ends the operator at a chosen one.

The operator's kubeconfig leads here; everything is carried on unchanged. Writes pass one at a time, so that "between
two writes" is a moment that exists: the first has been made, the second was asked for and never arrives, and the
process that asked was killed with SIGKILL. A write that the API server refuses changed nothing and does not count, nor
does an Event: news is a courtesy, and may be lost. Nothing in the product knows of all this.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import ssl
import threading
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Self, TypeVar

import aiohttp
from aiohttp import web
from yarl import URL

from lab import trainplane

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from lab.cluster import Cluster
    from lab.processes import Process

_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host"})
_LARGEST_BODY = 16 << 20

Result = TypeVar("Result")


@dataclass(frozen=True)
class Write:
    """One write: `PATCH trainjobs/status` about the TrainJob of that name."""

    what: str
    about: str


@dataclass
class _Trap:
    """Let so many more writes about a TrainJob pass, then kill whoever runs by then."""

    victim: Callable[[], Process]
    about: str
    left: int


class Gate:
    """The gate, on a thread and a loop of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._upstream = f"https://127.0.0.1:{cluster.port}"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gate", daemon=True)
        self._one_at_a_time = asyncio.Lock()
        self._trap: _Trap | None = None
        self._sprung = threading.Event()
        self.writes: list[Write] = []
        """Every write that the API server made, in order."""
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # -- for the test ---------------------------------------------------------------------------------------------

    def kubeconfig(self) -> Path:
        """Return the operator's kubeconfig, leading through the gate."""
        path = self._cluster.folder / "gate.kubeconfig"
        path.touch(mode=0o600)
        direct = trainplane.kubeconfig(self._cluster).read_text()
        path.write_text(direct.replace(self._upstream, f"https://127.0.0.1:{self.port}"))
        return path

    def about(self, name: str) -> list[str]:
        """Return the writes about one TrainJob that were made so far; whoever sees what one did finds it here."""
        return [write.what for write in self._run(self._made()) if write.about == name]

    def arm(self, victim: Callable[[], Process], name: str, *, after: int) -> None:
        """Let `after` more writes about a TrainJob pass, and kill the operator when it asks for another."""
        self._run(self._set(_Trap(victim, name, after)))

    def sprung(self) -> bool:
        """Return whether the operator was killed since `arm`."""
        return self._sprung.is_set()

    def disarm(self) -> None:
        """Let everything pass."""
        self._run(self._set(None))

    async def _made(self) -> list[Write]:
        async with self._one_at_a_time:  # behind a write that the API server has made and whose answer is on its way
            return list(self.writes)

    async def _set(self, trap: _Trap | None) -> None:
        async with self._one_at_a_time:  # behind what a killed operator had still asked for, which is dropped
            self._trap = trap
            self._sprung.clear()

    # -- carrying -------------------------------------------------------------------------------------------------

    def _run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    async def _open(self) -> None:
        with self._cluster.sandbox.entered():
            listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        pair = self._cluster.issue_serving("gate", "gate", ("127.0.0.1",))
        serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        serving.load_cert_chain(pair.certificate, pair.key)
        calling = ssl.create_default_context(cafile=str(self._cluster.authority))
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=calling, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        application = web.Application(client_max_size=_LARGEST_BODY)
        application.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.0, handler_cancellation=True)
        await self._runner.setup()
        await web.SockSite(self._runner, listener, ssl_context=serving).start()

    async def _close(self) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read() if request.method in _WRITES else b""
        if request.method not in _WRITES or "/events" in request.path:
            return await self._carry(request, body)
        write = _write(request, body)
        async with self._one_at_a_time:
            if not self._passes(write):
                request.protocol.force_close()
                return web.Response(status=503)
            response = await self._carry(request, body)
            if response.status < HTTPStatus.BAD_REQUEST:
                self._note(write)
            return response

    def _passes(self, write: Write) -> bool:
        trap = self._trap
        if trap is None:
            return True
        if not self._sprung.is_set():
            if write.about != trap.about or trap.left:
                return True
            trap.victim().signal(signal.SIGKILL)
            self._sprung.set()
        return False

    def _note(self, write: Write) -> None:
        self.writes.append(write)
        if self._trap and self._trap.about == write.about:
            self._trap.left -= 1

    async def _carry(self, request: web.Request, body: bytes) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        url = URL(self._upstream + request.raw_path, encoded=True)
        async with self._session.request(request.method, url, headers=headers, data=body or None) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP}
            response = web.StreamResponse(status=answer.status, headers=kept)
            with contextlib.suppress(ConnectionError):
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
                await response.write_eof()
            return response


def _write(request: web.Request, body: bytes) -> Write:
    """Name a write by its verb, resource and subresource; what it is about by the path, or by what it would create."""
    parts = request.path.strip("/").split("/")
    parts = parts[parts.index("namespaces") + 2 :] if "namespaces" in parts else parts[-2:]
    resource, *rest = parts
    name = rest[0] if rest else _created_name(json.loads(body))
    subresource = f"/{rest[1]}" if len(rest) > 1 else ""
    return Write(f"{request.method} {resource}{subresource}", name)


def _created_name(tree: dict[str, Any]) -> str:
    """Return the TrainJob that an Event, or an object named after it, belongs to."""
    if "involvedObject" in tree:
        return str(tree["involvedObject"]["name"])
    owners = tree["metadata"].get("ownerReferences") or [{"name": tree["metadata"]["name"]}]
    return str(owners[0]["name"])
