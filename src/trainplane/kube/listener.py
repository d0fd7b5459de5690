"""A small HTTP(S) server: one handler, no routing table, no access log, and bounds for what callers may cost.

What the webhook, health, metrics and hub servers share. It stands on aiohttp's low-level server, because a review costs
166-253 µs of CPU over TLS and an application's router and middlewares would be a good part of that.

Anybody on the network may connect, so every cost has a bound that does not depend on the caller: connections and bytes
(`capacity` says who goes when they run out), and the time of each phase of a request (`inbound`). Sockets are accepted
here and not by the event loop, whose server shows no connection before its handshake is done.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from trainplane.kube.capacity import Capacity
from trainplane.kube.inbound import Inbound

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable
    from types import TracebackType
    from typing import Self

    Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

log = logging.getLogger(__name__)

ACCEPTS: Final = 16
"""Connections accepted in one turn of the loop: a flood of handshakes shares the loop with requests under way."""
BACKLOG: Final = 1024
"""Connections that the system holds until they are accepted; it may allow fewer."""
RECEIVE_BYTES: Final = 64 << 10
"""What the system keeps of a connection until it is read; its own default grows to megabytes, of kernel memory and
then, in one piece, of ours."""
SEND_BYTES: Final = 256 << 10
"""What the system keeps of what a peer has not read yet; its own default grows to megabytes for each slow reader."""
REPORT_SECONDS: Final = 60.0
"""Seconds between two lines of log that tell how many connections were cut."""

_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
_NO_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass(frozen=True, slots=True)
class ListenerSettings:
    """Where and how to listen.

    Attributes:
        port: TCP port; 0 lets the system choose, which tests want.
        host: address to bind; without one, all that the pod has, IPv4 and IPv6, since the kubelet and the API server
            come from outside it.
        body_limit: bytes of the largest request body; 7 MiB holds the old and new form of the largest object that
            etcd stores (1.5 MiB each by default, 3 MiB as a request) with room to spare. A larger Content-Length is
            refused before a byte of the body is read.
        idle_seconds: how long an unused connection is kept; 120 outlasts the API server's own 90, which so is the one
            that closes: a connection closed by us may have a request on its way.
        stop_seconds: how long requests under way may take to end when the server stops; 5 stays well inside the 30
            seconds that a pod gets.
        reuse_port: let several processes of one machine listen on the same port and share its load.
        connections: open at once, in handshakes too; 1,024 are more than three API servers use when each has the 200
            writes under way that it allows by default. An idle one takes some 30 KB with TLS. Never more than half of
            the files that the process may have.
        bodies: bytes that requests under way hold together, above 64 KiB each, which are free; 32 MiB are ten of the
            largest that an API server sends, and usual reviews are free.
        handshake_seconds: for a whole TLS handshake; 10 is what API servers give it themselves.
        header_seconds: for all headers of a request, from their first byte; 10 is the time after which an API server
            has given its webhook up.
        body_seconds: for a whole body, from the end of its headers; 10 for the same reason.
        send_seconds: how long a peer may take to read each 64 KiB that wait for it; 30 outlasts a pause of the network.
    """

    port: int
    host: str | None = None
    body_limit: int = 7 << 20
    idle_seconds: float = 120.0
    stop_seconds: float = 5.0
    reuse_port: bool = False
    connections: int = 1024
    bodies: int = 32 << 20
    handshake_seconds: float = 10.0
    header_seconds: float = 10.0
    body_seconds: float = 10.0
    send_seconds: float = 30.0


class Listener:
    """Serves `handler` from `start` to `stop`, or as an async context manager.

    With `tls`, changes of the context's certificate (`certificates.ServingContext`) count from the next connection.
    A handler that raises gives the caller a bare 500 and a line in the log of `aiohttp.server`.
    """

    def __init__(self, handler: Handler, settings: ListenerSettings, *, tls: ssl.SSLContext | None = None) -> None:
        self._handler = handler
        self._settings = settings
        self._handshake: dict[str, Any] = {}
        if tls is not None:
            seconds = settings.handshake_seconds
            self._handshake = {"ssl": tls, "ssl_handshake_timeout": seconds, "ssl_shutdown_timeout": seconds}
        self.capacity = Capacity[Inbound](settings.connections, settings.bodies)
        """Who is connected."""
        self._sockets: list[socket.socket] = []
        self._server: web.Server | None = None
        self._looking: asyncio.Task[None] | None = None
        self._draining = False

    @property
    def port(self) -> int:
        """The port in use; raises RuntimeError before `start`."""
        if not self._sockets:
            raise RuntimeError("the listener has no port before it was started")
        return int(self._sockets[0].getsockname()[1])

    @property
    def serving(self) -> bool:
        """Whether connections are accepted; a readiness check."""
        return bool(self._sockets)

    async def start(self) -> None:
        """Bind and serve; raises OSError when the address is taken."""
        loop = asyncio.get_running_loop()
        sockets = await self._bind(loop)
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.capacity.places = min(self._settings.connections, files // 2)  # the other half is the process's own
        self._server = web.Server(self._serve, request_factory=self._request)
        self._sockets = sockets
        for each in sockets:
            loop.add_reader(each, self._accept, loop, each)
        self._looking = loop.create_task(self._look(loop))

    def drain(self) -> None:
        """Make each answer from now on the last of its connection, so that callers find another replica.

        A connection that stays in use until `stop` closes it may have a request on its way, which its caller does not
        send again: an API server would tell its user that the webhook failed.
        """
        self._draining = True

    async def stop(self) -> None:
        """Accept no more, let requests under way end, close."""
        sockets, self._sockets = self._sockets, []
        for each in sockets:
            asyncio.get_running_loop().remove_reader(each)
            each.close()
        server, self._server = self._server, None
        if server is None:
            return
        for inbound in self.capacity.all():
            if inbound.opening is not None:
                self.capacity.leave(inbound)
                inbound.cut()
        await asyncio.sleep(0)  # what came before is under way then, and ends well
        server.pre_shutdown()
        await server.shutdown(self._settings.stop_seconds)
        if self._looking is not None:
            self._looking.cancel()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # -- connections ------------------------------------------------------------------------------------------------

    async def _bind(self, loop: asyncio.AbstractEventLoop) -> list[socket.socket]:
        """Return listening sockets for all addresses meant, on one port; IPv6 only where the machine has it."""
        port, sockets = self._settings.port, list[socket.socket]()
        for family, host in await self._addresses(loop):
            try:
                bound = _listen(family, host, port, reuse_port=self._settings.reuse_port)
            except OSError as error:
                if sockets and error.errno in _NO_IPV6:
                    continue
                for each in sockets:
                    each.close()
                raise
            sockets.append(bound)
            port = bound.getsockname()[1]
        return sockets

    async def _addresses(self, loop: asyncio.AbstractEventLoop) -> list[tuple[int, str]]:
        if self._settings.host is None:
            return [(socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")]  # noqa: S104 called from other machines
        found = await loop.getaddrinfo(self._settings.host, None, type=socket.SOCK_STREAM)
        return sorted({(int(family), str(address[0])) for family, _, _, _, address in found})

    def _accept(self, loop: asyncio.AbstractEventLoop, listening: socket.socket) -> None:
        """Accept who waits, a few at a time."""
        assert self._server is not None  # noqa: S101 nobody accepts before the start
        for _ in range(ACCEPTS):
            try:
                accepted, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_FILES:
                    raise
                self._rest(loop, listening)
                return
            accepted.setblocking(False)
            inbound = Inbound(self._server, self.capacity, self._settings, loop)
            if self.capacity.enter(inbound):
                inbound.opening = loop.create_task(self._open(loop, inbound, accepted))
            else:
                accepted.close()

    def _rest(self, loop: asyncio.AbstractEventLoop, listening: socket.socket) -> None:
        """Give a file back that the process has not, and accept again when it is closed."""
        self.capacity.make_room()
        loop.remove_reader(listening)
        loop.call_later(0.1, self._resume, loop, listening)

    def _resume(self, loop: asyncio.AbstractEventLoop, listening: socket.socket) -> None:
        if listening in self._sockets:
            loop.add_reader(listening, self._accept, loop, listening)

    async def _open(self, loop: asyncio.AbstractEventLoop, inbound: Inbound, accepted: socket.socket) -> None:
        try:
            await loop.connect_accepted_socket(lambda: inbound, accepted, **self._handshake)
        except OSError:  # no handshake, or not in time: whoever it was, there is nobody to tell
            self.capacity.leave(inbound)
            self.capacity.cuts["handshake"] += 1
        finally:
            inbound.opening = None

    async def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cut who is late, and tell now and then how many were cut.

        Time in which this process itself stood still counts against nobody: a starved process would cut all.
        """
        settings = self._settings
        interval = min(1.0, min(settings.header_seconds, settings.body_seconds, settings.send_seconds) / 4)
        told, next_report = 0, 0.0
        now = loop.time()
        while True:
            due = now + interval
            await asyncio.sleep(interval)
            now = loop.time()
            stood_still = now - due if now - due > interval else 0.0
            for inbound in self.capacity.all():
                inbound.deadline += stood_still
                if inbound.is_late(now):
                    self.capacity.cut(inbound, "late")
            cuts = self.capacity.cuts
            if cuts.total() > told and now >= next_report:
                told, next_report = cuts.total(), now + REPORT_SECONDS
                log.warning(
                    "connections were cut",
                    extra={
                        "port": self.port,
                        "open": len(self.capacity),
                        **{f"cut_{why}": n for why, n in cuts.items()},
                    },
                )

    # -- requests ---------------------------------------------------------------------------------------------------

    def _request(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        loop = asyncio.get_running_loop()
        limit = self._settings.body_limit
        protocol.asked(payload)
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=limit)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if (request.content_length or 0) > self._settings.body_limit:
            return web.Response(status=413, text=f"a body of more than {self._settings.body_limit} bytes is not read\n")
        response = await self._handler(request)
        if self._draining:
            response.force_close()
        return response


def _listen(family: int, host: str, port: int, *, reuse_port: bool) -> socket.socket:
    bound = socket.create_server((host, port), family=family, backlog=BACKLOG, reuse_port=reuse_port)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)  # connections inherit it
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
    bound.setblocking(False)
    return bound


def path_of(request: web.BaseRequest) -> str:
    """Return the request's path as sent, without its query; parsing the whole URL costs more than the lookup."""
    return request.raw_path.partition("?")[0]


async def body_of(request: web.BaseRequest, limit: int) -> bytes:
    """Return a request's body; raises aiohttp's HTTPRequestEntityTooLarge past a limit.

    Pieces are kept as they came and joined once: a buffer that grows with a slow sender leaves holes in the heap.
    """
    pieces, size = list[bytes](), 0
    while piece := await request.content.readany():
        size += len(piece)
        if size > limit:
            raise web.HTTPRequestEntityTooLarge(limit, size)
        pieces.append(piece)
    return b"".join(pieces)
