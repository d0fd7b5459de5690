"""How requests reach one server: which way they take, TLS contexts, and the translation of errors into ours.

A request that is answered as a whole goes over `wire`; streams, WebSockets, large bodies, answers that may be
compressed, and all behind a proxy go through aiohttp, which nothing else of the client touches. It is imported on the
first use, so that importing the client stays cheap.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import re
import socket
import ssl
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from trainplane.kube.errors import ConfigError, ConnectError, HandshakeError, StreamError, TransportError
from trainplane.kube.tls import RECHECK_SECONDS
from trainplane.kube.wire import Answer, NotConnectedError, Wire, connecting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import aiohttp

    from trainplane.kube.clock import Clock
    from trainplane.kube.config import Config
    from trainplane.kube.credentials import Credential

log = logging.getLogger(__name__)

USER_AGENT = "trainplane"
JSON: Final = "application/json"

LARGE_BODY = 1 << 20
"""Bytes above which a body is written piece by piece, so that it does not hold the loop up; aiohttp warns otherwise."""

WHOLE_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
"""Methods whose answers are framed as `wire` reads them: one to HEAD says how long a body is that it does not have."""
_WITH_LENGTH: Final = frozenset({"POST", "PUT", "PATCH"})
"""Methods whose requests say how long their body is, also if there is none."""
_UNSENDABLE: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""What no header may have in it."""
_TARGET: Final = re.compile(r"/[!-~]*")
_PORTS: Final = {"http": 80, "https": 443}

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


class Request(NamedTuple):
    """A request as it is sent."""

    method: str
    path: str
    """Encoded, with its query."""
    body: bytes | None = None
    content_type: str | None = None
    accept: str = JSON
    seconds: float | None = None
    """For the whole of it, answer and body included; None: as long as it takes."""

    @property
    def what(self) -> str:
        """What is asked for, as errors say it: a query may quote what is nobody's business."""
        return f"{self.method} {self.path.partition('?')[0]}"


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
            ("User-Agent", USER_AGENT),
            *config.headers,
        )
        self._encodings = ("Accept-Encoding", "gzip" if config.compression else "identity")
        self._is_tls = self._base.startswith("https:")
        self._session: aiohttp.ClientSession | None = None
        self._wire, self._host = self._wired()
        self._head: tuple[str | None, bytes] | None = None
        self._closed = False
        self._tls: ssl.SSLContext | None = None
        self._tls_of: tuple[object, ...] | None = None
        self._tls_checked: float | None = None
        self._identity: tuple[str, str] | None = None

    async def exchange(self, request: Request, credential: Credential) -> Answer:
        """Return the whole answer. Raises TransportError."""
        if self._wire is None or not self._is_plain(request):
            return await self._exchange_apart(request, credential)
        if self._closed:
            raise TransportError(f"the client of {self._address} was closed")
        try:
            written = self._written(request, credential)
            context = self._context(credential)
            tls = context if isinstance(context, ssl.SSLContext) else None
            return await self._wire.exchange(written, tls, self._config.tls.server_name, request.seconds)
        except (OSError, ValueError) as error:
            self._tls_checked = None  # as in `translated`
            raise _plainly(error, f"{request.what} at {self._address}") from None

    def _is_plain(self, request: Request) -> bool:
        """Return whether a request may go over the wire: what it reads may be a list, worth compressing where asked."""
        reads_compressed = request.method == "GET" and self._config.compression
        is_short = request.body is None or len(request.body) <= LARGE_BODY
        return request.method in WHOLE_METHODS and not reads_compressed and is_short

    async def _exchange_apart(self, request: Request, credential: Credential) -> Answer:
        response = await self.send(request, credential)
        try:
            with self.translated(request):
                return Answer(response.status, response.headers, await response.read())
        except BaseException:
            response.close()
            raise

    def _wired(self) -> tuple[Wire | None, str]:
        """Return the wire to the server and what it is called, if requests to it need nothing that only aiohttp has."""
        config, settings = self._config, self._settings
        try:
            parts = urlsplit(self._base)
            port = parts.port or _PORTS.get(parts.scheme, 0)
        except ValueError:
            return None, ""  # aiohttp's own words tell what is wrong with it
        plain = parts.hostname is not None and parts.netloc.isascii() and "@" not in parts.netloc
        if config.proxy is not None or not plain or not port or parts.query or parts.fragment:
            return None, ""
        wire = Wire(
            parts.hostname or "",
            port,
            make_socket=self._socket,
            connect_seconds=settings.connect_seconds,
            idle_seconds=settings.idle_seconds,
        )
        return wire, parts.netloc

    def _written(self, request: Request, credential: Credential) -> bytes:
        """Return a request as it is sent; raises ValueError rather than send what says something else."""
        method, path, body, content_type, accept, _ = request
        target = urlsplit(self._base).path + path
        if _TARGET.fullmatch(target) is None:
            raise ValueError("a path that is not encoded")
        if self._head is None or self._head[0] != credential.authorization:
            headers = (("Host", self._host), *self._headers_with(credential), ("Accept-Encoding", "identity"))
            self._head = credential.authorization, b"".join(map(_field, headers))
        said = _field(("Accept", accept))
        if content_type is not None:
            said += _field(("Content-Type", content_type))
        if body is not None or method in _WITH_LENGTH:
            said += b"Content-Length: %d\r\n" % len(body or b"")
        return b"%s %s HTTP/1.1\r\n%s%s\r\n%s" % (method.encode(), target.encode(), self._head[1], said, body or b"")

    async def send(self, request: Request, credential: Credential) -> aiohttp.ClientResponse:
        """Return the answer, its body unread. Raises TransportError."""
        import aiohttp  # noqa: PLC0415 see the module's docstring
        import yarl  # noqa: PLC0415

        session = self._session or self._open()
        headers = self._headers_with(credential)
        headers += [self._encodings, ("Accept", request.accept)]
        if request.content_type is not None:
            headers.append(("Content-Type", request.content_type))
        timeout = aiohttp.ClientTimeout(total=request.seconds, connect=self._settings.connect_seconds)
        body = request.body
        with self.translated(request):
            return await session.request(
                request.method,
                yarl.URL(self._base + request.path, encoded=True),
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
        with self.translated(Request("GET", path)):
            return await session.ws_connect(
                yarl.URL(self._base + path, encoded=True),
                protocols=protocols,
                headers=[*self._headers_with(credential), self._encodings],
                ssl=self._context(credential),
                server_hostname=self._config.tls.server_name,
                proxy=self._config.proxy,
                max_msg_size=0,
                heartbeat=self._settings.ping_seconds,
                timeout=aiohttp.ClientWSTimeout(ws_close=self._settings.connect_seconds),
            )

    @contextlib.contextmanager
    def translated(self, request: Request, *, streaming: bool = False) -> Iterator[None]:
        """Turn aiohttp's errors within the block into ours, saying what was being done.

        Theirs are not passed on as causes: they show whole requests, and quote what cannot be sent.
        """
        import aiohttp  # noqa: PLC0415 see the module's docstring

        try:
            with connecting():
                yield
        except (ConnectionError, TimeoutError, aiohttp.ClientError, ssl.SSLError, ValueError) as error:
            if isinstance(error, aiohttp.WSServerHandshakeError):
                raise
            # The next request looks at the certificate files again: a rotation may be what broke this one.
            self._tls_checked = None
            where = f"{request.what} at {self._address}"
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
        if self._wire is not None:
            self._wire.close()
        if self._session is not None:
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

    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return _no_handshake(where, _says(error))
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return ConnectError(f"{where}: no connection in time", timed_out=True)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientHttpProxyError):
        return ConnectError(f"{where}: no connection: {_says(error)}")
    if isinstance(error, aiohttp.ClientError) and not isinstance(error, TimeoutError | ValueError):
        return TransportError(f"{where}: the connection broke: {_says(error)}")
    return _plainly(error, where)


def _plainly(error: Exception, where: str) -> TransportError | ConfigError:
    """Translate what the system raises."""
    says = str(error) or type(error).__name__
    if isinstance(error, ssl.SSLError):
        return _no_handshake(where, says)
    if isinstance(error, ValueError):
        text = "no request can be made with this server, tls-server-name, proxy-url and these credentials"
        return ConfigError(f"{where}: {text}: one has a port, a name or a character that cannot be")
    if isinstance(error, NotConnectedError):
        return ConnectError(f"{where}: no connection: {says}", timed_out=error.timed_out)
    if isinstance(error, TimeoutError):
        return TransportError(f"{where}: no answer in time", timed_out=True)
    return TransportError(f"{where}: the connection broke: {says}")


def _no_handshake(where: str, says: str) -> HandshakeError:
    advice = "check certificate-authority, tls-server-name and the client certificate"
    return HandshakeError(f"{where}: TLS failed: {says}; {advice}")


def _field(header: tuple[str, str]) -> bytes:
    """Return a header as it is sent; raises ValueError, which does not quote it, if it would be more than one."""
    name, value = header
    if _UNSENDABLE.search(name) or _UNSENDABLE.search(value):
        raise ValueError("a header with a character that cannot be")
    return f"{name}: {value}\r\n".encode()


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
