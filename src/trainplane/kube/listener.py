"""A small HTTP(S) server: one handler, no routing table, no access log.

What the webhook, health and metrics servers share. It stands on aiohttp's low-level server, because a review costs
166-253 µs of CPU over TLS and an application's router and middlewares would be a good part of that.
"""

from __future__ import annotations

import asyncio
import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable
    from types import TracebackType
    from typing import Self

    Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)


@dataclass(frozen=True, slots=True)
class ListenerSettings:
    """Where and how to listen.

    Attributes:
        port: TCP port; 0 lets the system choose, which tests want.
        host: address to bind; without one, all that the pod has, IPv4 and IPv6, since the kubelet and the API server
            come from outside it.
        body_limit: bytes of the largest request body; 7 MiB holds the old and new form of the largest object that
            etcd stores (1.5 MiB each by default, 3 MiB as a request) with room to spare.
        idle_seconds: how long an unused connection is kept; 120 outlasts the API server's own 90.
        stop_seconds: how long requests under way may take to end when the server stops; 5 stays well inside the 30
            seconds that a pod gets.
        reuse_port: let several processes of one machine listen on the same port and share its load.
    """

    port: int
    host: str | None = None
    body_limit: int = 7 << 20
    idle_seconds: float = 120.0
    stop_seconds: float = 5.0
    reuse_port: bool = False


class Listener:
    """Serves `handler` from `start` to `stop`, or as an async context manager.

    With `tls`, changes of the context's certificate (`certificates.ServingContext`) count from the next connection.
    A handler that raises gives the caller a bare 500 and a line in the log of `aiohttp.server`.
    """

    def __init__(self, handler: Handler, settings: ListenerSettings, *, tls: ssl.SSLContext | None = None) -> None:
        self._handler = handler
        self._settings = settings
        self._tls = tls
        self._runner: web.ServerRunner | None = None

    @property
    def port(self) -> int:
        """The port in use; raises RuntimeError before `start`."""
        if self._runner is None or not self._runner.addresses:
            raise RuntimeError("the listener has no port before it was started")
        return int(self._runner.addresses[0][1])

    @property
    def serving(self) -> bool:
        """Whether connections are accepted; a readiness check."""
        return self._runner is not None

    async def start(self) -> None:
        """Bind and serve; raises OSError when the address is taken."""
        settings = self._settings
        server = web.Server(
            self._handler, request_factory=self._request, access_log=None, keepalive_timeout=settings.idle_seconds
        )
        runner = web.ServerRunner(server, shutdown_timeout=settings.stop_seconds)
        await runner.setup()
        try:
            if settings.host is not None:
                await self._bind(runner, settings.host, settings.port)
            else:
                await self._bind_everywhere(runner)
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner

    async def stop(self) -> None:
        """Accept no more, let requests under way end, close."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _bind(self, runner: web.ServerRunner, host: str, port: int) -> None:
        reuse = self._settings.reuse_port or None
        await web.TCPSite(runner, host, port, ssl_context=self._tls, reuse_port=reuse).start()

    async def _bind_everywhere(self, runner: web.ServerRunner) -> None:
        await self._bind(runner, "0.0.0.0", self._settings.port)  # noqa: S104 called from other machines
        try:
            await self._bind(runner, "::", runner.addresses[0][1])
        except OSError as error:
            if error.errno not in _NO_IPV6:
                raise

    def _request(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        loop = asyncio.get_running_loop()
        limit = self._settings.body_limit
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=limit)


def path_of(request: web.BaseRequest) -> str:
    """Return the request's path as sent, without its query; parsing the whole URL costs more than the lookup."""
    return request.raw_path.partition("?")[0]
