"""The one place that touches aiohttp: sessions, TLS contexts and the translation of its errors into ours.

aiohttp is imported on the first request, so that importing the client stays cheap.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import socket
import ssl
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainplane.kube.errors import ConfigError, ConnectError, HandshakeError, StreamError, TransportError
from trainplane.kube.tls import RECHECK_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import aiohttp

    from trainplane.kube.clock import Clock
    from trainplane.kube.config import Config
    from trainplane.kube.credentials import Credential

log = logging.getLogger(__name__)

USER_AGENT = "trainplane"

LARGE_BODY = 1 << 20
"""Bytes above which a body is written piece by piece, so that it does not hold the loop up; aiohttp warns otherwise."""

CLOSE_SECONDS = 0.5
"""How long `close` waits for connections that a peer does not say goodbye on."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How connections are made and kept."""

    connect_seconds: float = 10.0
    """Seconds for DNS, TCP and TLS together; a healthy cluster needs one round trip of each."""
    idle_seconds: float = 30.0
    """Seconds an unused connection is kept; below the server's 90, or requests race its closing."""
    keepalive_seconds: int = 20
    """Seconds of silence before the kernel probes the peer: three lost probes end a watch whose node has vanished."""
    ping_seconds: float = 60.0
    """Seconds between pings on a WebSocket, which a pong must answer within half of it: busy servers answer late."""


class Connection:
    """Sends single requests to the server of a Config, with the newest certificates."""

    def __init__(self, config: Config, settings: ConnectionSettings, clock: Clock, *, connections: int) -> None:
        self._config = config
        self._settings = settings
        self._clock = clock
        self._connections = connections
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._base = config.server.rstrip("/")
        self._address = config.address
        self._headers = (
            ("Accept-Encoding", "gzip" if config.compression else "identity"),
            ("User-Agent", USER_AGENT),
            *config.headers,
        )
        self._is_tls = self._base.startswith("https:")
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self._tls: ssl.SSLContext | None = None
        self._tls_of: tuple[object, ...] | None = None
        self._tls_checked: float | None = None
        self._identity: tuple[str, str] | None = None

    async def send(
        self,
        method: str,
        path: str,
        credential: Credential,
        *,
        body: bytes | None = None,
        content_type: str | None = None,
        accept: str | None = None,
        total_seconds: float | None,
    ) -> aiohttp.ClientResponse:
        """Return the answer, its body unread. `path` is encoded and carries its query. Raises TransportError."""
        import aiohttp  # noqa: PLC0415 see the module's docstring
        import yarl  # noqa: PLC0415

        session = self._session or self._open()
        headers = self._headers_with(credential)
        headers.append(("Accept", accept or "application/json"))
        if content_type is not None:
            headers.append(("Content-Type", content_type))
        timeout = aiohttp.ClientTimeout(total=total_seconds, connect=self._settings.connect_seconds)
        with self.translated(method, path):
            return await session.request(
                method,
                yarl.URL(self._base + path, encoded=True),
                data=body if body is None or len(body) <= LARGE_BODY else io.BytesIO(body),
                headers=headers,
                allow_redirects=False,
                timeout=timeout,
                ssl=self._context(credential),
                server_hostname=self._config.tls.server_name,
                proxy=self._config.proxy,
            )

    async def websocket(
        self, path: str, credential: Credential, protocols: Sequence[str]
    ) -> aiohttp.ClientWebSocketResponse:
        """Open a WebSocket. A refused upgrade is raised as aiohttp's WSServerHandshakeError, for its status."""
        import aiohttp  # noqa: PLC0415 see the module's docstring
        import yarl  # noqa: PLC0415

        session = self._session or self._open()
        with self.translated("GET", path):
            return await session.ws_connect(
                yarl.URL(self._base + path, encoded=True),
                protocols=protocols,
                headers=self._headers_with(credential),
                ssl=self._context(credential),
                server_hostname=self._config.tls.server_name,
                proxy=self._config.proxy,
                max_msg_size=0,
                heartbeat=self._settings.ping_seconds,
                timeout=aiohttp.ClientWSTimeout(ws_close=self._settings.connect_seconds),
            )

    @contextlib.contextmanager
    def translated(self, method: str, path: str, *, streaming: bool = False) -> Iterator[None]:
        """Turn aiohttp's errors within the block into ours, saying what was being done.

        Theirs are not passed on as causes: they show whole requests, and quote what cannot be sent.
        """
        import aiohttp  # noqa: PLC0415 see the module's docstring

        try:
            yield
        except (ConnectionError, TimeoutError, aiohttp.ClientError, ssl.SSLError, ValueError) as error:
            if isinstance(error, aiohttp.WSServerHandshakeError):
                raise
            # The next request looks at the certificate files again: a rotation may be what broke this one.
            self._tls_checked = None
            where = f"{method} {path.partition('?')[0]} at {self._address}"
            if streaming:
                raise StreamError(f"{where}: the stream was cut: {_says(error)}") from None
            raise _translate(error, where) from None

    def recheck_files(self) -> None:
        """Look at the certificate files before the next request."""
        self._tls_checked = None

    async def close(self) -> None:
        """Close every connection, and wait a moment until they are: the loop may end right after.

        aiohttp waits for those that it has; one that was given back cut, a log that nobody reads on, is TLS's to close.
        What was still being asked is not asked again: nobody would close that connection.
        """
        self._closed = True
        if self._session is None:
            return
        session, self._session = self._session, None
        await session.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                while any(one.fileno() != -1 for one in self._sockets):  # noqa: ASYNC110 nobody tells
                    await asyncio.sleep(CLOSE_SECONDS / 50)

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp  # noqa: PLC0415 see the module's docstring

        if self._closed:
            raise TransportError(f"the client of {self._address} was closed")
        connector = aiohttp.TCPConnector(
            limit=self._connections,
            keepalive_timeout=self._settings.idle_seconds,
            socket_factory=self._socket,
        )
        self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session

    def _socket(self, address: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, *_ = address
        made = socket.socket(family, kind, protocol)
        self._sockets.add(made)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        seconds = self._settings.keepalive_seconds
        for option, value in (("TCP_KEEPIDLE", seconds), ("TCP_KEEPINTVL", max(1, seconds // 4)), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, option):  # not on every system
                made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        return made

    def _headers_with(self, credential: Credential) -> list[tuple[str, str]]:
        headers = list(self._headers)
        if credential.authorization is not None:
            headers.append(("Authorization", credential.authorization))
        return headers

    def _context(self, credential: Credential) -> ssl.SSLContext | bool:
        """Return the TLS context, made anew when a file or the plugin's certificate changed.

        Connections made with the old context are not reused, since aiohttp pools by context, and close when idle.
        Files caught in the middle of being replaced leave the old context in use until the next look.
        """
        if not self._is_tls:
            return True
        now = self._clock.monotonic()
        same_identity = credential.certificate == self._identity
        is_checked = self._tls_checked is not None and now - self._tls_checked < RECHECK_SECONDS
        if self._tls is not None and same_identity and is_checked:
            return self._tls
        fingerprint = self._config.tls.fingerprint()
        self._tls_checked = now
        if self._tls is None or not same_identity or fingerprint != self._tls_of:
            try:
                self._tls = self._config.tls.context(credential.certificate)
            except ConfigError:
                if self._tls is None or not same_identity:
                    raise
                log.warning("certificate files are not usable now, keeping the old ones", exc_info=True)
                return self._tls
            self._tls_of, self._identity = fingerprint, credential.certificate
        return self._tls


def _translate(error: Exception, where: str) -> TransportError | ConfigError:
    import aiohttp  # noqa: PLC0415 see the module's docstring

    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError | ssl.SSLError):
        advice = "check certificate-authority, tls-server-name and the client certificate"
        return HandshakeError(f"{where}: TLS failed: {_says(error)}; {advice}")
    if isinstance(error, ValueError):
        text = "no request can be made with this server, tls-server-name, proxy-url and these credentials"
        return ConfigError(f"{where}: {text}: one has a port, a name or a character that cannot be")
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return ConnectError(f"{where}: no connection in time", timed_out=True)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientHttpProxyError):
        return ConnectError(f"{where}: no connection: {_says(error)}")
    if isinstance(error, asyncio.TimeoutError):
        return TransportError(f"{where}: no answer in time", timed_out=True)
    return TransportError(f"{where}: the connection broke: {_says(error)}")


def _says(error: Exception) -> str:
    """Return an error's text, without the URLs (of a proxy, with its password) and the objects that some have in it."""
    import aiohttp  # noqa: PLC0415 see the module's docstring

    if isinstance(error, aiohttp.ClientResponseError):
        whose = "the proxy's " if isinstance(error, aiohttp.ClientHttpProxyError) else ""
        return f"{whose}{error.status} {' '.join(error.message.split())}"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        error = error.certificate_error
    elif isinstance(error, aiohttp.ClientConnectorError):
        error = error.os_error
    return str(error) or type(error).__name__
