"""Requests to one API server: credentials, retries and the limit on requests in flight.

Knows verbs and status codes, not objects. What is repeated, and when:

- the server asks to come back (429; 503 with Retry-After): any verb, since it did nothing; never sooner than it asked;
- no connection was made: any verb, since nothing was sent;
- the connection broke, or 502, 503, 504: only a request that may happen twice (`idempotent`);
- 401: once, at once, if the credentials say that they have another answer.

Each pause is jittered, and attempts are bounded in number and time. Everything else is raised as it came.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from trainplane.kube.clock import SystemClock
from trainplane.kube.codec import error_from_status
from trainplane.kube.connection import JSON, Connection, ConnectionSettings, Request
from trainplane.kube.errors import (
    ApiError,
    ConnectError,
    KubeError,
    ServerTimeoutError,
    StreamError,
    TooManyRequestsError,
    TransportError,
    UnauthorizedError,
    UnavailableError,
)
from trainplane.kube.limiter import Limiter, LimiterSettings

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
    from typing import Self

    import aiohttp

    from trainplane.kube.clock import Clock
    from trainplane.kube.config import Config
    from trainplane.kube.credentials import Credential
    from trainplane.kube.wire import Answer

    Permit = Callable[[], None]

log = logging.getLogger(__name__)

T = TypeVar("T")

NO_ANSWER = "<error>"
"""What a request without an answer is counted under, as client-go does."""

_WARNING = re.compile(r'\d{3} \S+ "(?P<text>.*)"', re.DOTALL)

IDEMPOTENT_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})


@dataclass(frozen=True, slots=True)
class TransportSettings:
    """Patience towards the API server."""

    read_seconds: float = 30.0
    """Seconds for the answer to a GET of one object; a healthy server needs milliseconds."""
    list_seconds: float = 65.0
    """Seconds for a page of a list; the server itself gives up after 60 and says so, which tells more than a cut."""
    write_seconds: float = 65.0
    """Seconds for a write; admission webhooks may take 30 of them, and again the server gives up after 60."""
    attempts: int = 6
    """Times a request is sent at most."""
    patience_seconds: float = 60.0
    """Seconds after the first attempt in which another may still begin."""
    backoff_seconds: float = 0.1
    """Longest first pause where the server names none; doubles with each attempt, and a random part of it is slept."""
    backoff_most_seconds: float = 5.0
    """Longest pause where the server names none: a restarted API server is found within seconds."""
    retry_after_jitter: float = 0.25
    """Random part added to a Retry-After, so that all who were told the same do not come back together."""
    streams: int = 256
    """Watches, followed logs and execs open at once; each holds a connection."""
    limiter: LimiterSettings = field(default_factory=LimiterSettings)
    connection: ConnectionSettings = field(default_factory=ConnectionSettings)


class Response(NamedTuple):
    """An answer of success, read whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Exchange(NamedTuple):
    """A request, and when it may be sent."""

    request: Request
    idempotent: bool = True
    permit: Permit | None = None


class Transport:
    """Sends requests to the cluster of a Config. Use within one event loop; `close` it, or use `async with`.

    `requested` hears of each request sent, repeats included: its method, the server's host and the code of the answer,
    `NO_ANSWER` where none came. `metrics.Metrics.requested` counts them.
    """

    def __init__(
        self,
        config: Config,
        *,
        settings: TransportSettings | None = None,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
        requested: Callable[[str, str, int | str], None] | None = None,
    ) -> None:
        self.config = config
        self.settings = settings or TransportSettings()
        self.limiter = Limiter(self.settings.limiter)
        self._clock = clock or SystemClock()
        self._jitter = jitter
        self._requested = requested
        self._host = config.address.partition("://")[2]
        connections = self.settings.limiter.most + self.settings.streams
        self._connection = Connection(config, self.settings.connection, self._clock, connections=connections)
        self._streams = 0
        self._open: set[aiohttp.ClientResponse] = set()
        self._warned: set[str] = set()

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str | None = None,
        accept: str | None = None,
        idempotent: bool | None = None,
        timeout_seconds: float | None = None,
        permit: Permit | None = None,
    ) -> Response:
        """Send a request, again where that is safe, and return the answer of success.

        `path` is encoded and carries its query. `idempotent` overrides what the method says (a server-side apply is a
        PATCH that may happen twice). `permit` is called right before each sending, when the request has its place, and
        raises if it may not go out any more. Raises ApiError for an answer of failure, TransportError for none,
        CredentialError where there is nothing to send.
        """
        settings = self.settings
        if timeout_seconds is None:
            timeout_seconds = settings.read_seconds if method == "GET" else settings.write_seconds
        if idempotent is None:
            idempotent = method in IDEMPOTENT_METHODS
        request = Request(method, path, body, content_type, accept or JSON, timeout_seconds)
        return Response(*await self._insist(_Exchange(request, idempotent, permit), self._ask))

    def apart(self, limiter: LimiterSettings | None = None, *, streams: int | None = None) -> Transport:
        """Return a transport to the same server with connections and a limit of its own.

        What goes through it never waits behind what goes through this one. It shares the credentials and is closed by
        whoever asked for it.
        """
        settings = self.settings if limiter is None else replace(self.settings, limiter=limiter)
        settings = settings if streams is None else replace(settings, streams=streams)
        return Transport(
            self.config, settings=settings, clock=self._clock, jitter=self._jitter, requested=self._requested
        )

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, *, total_seconds: float | None = None, accept: str | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a GET whose answer is read as it comes: within the block, iterate over its chunks.

        Opening is retried like any GET; once open, a cut raises StreamError and whoever reads decides where to go on.
        `total_seconds` bounds the stream's whole life, past which it counts as cut.
        """
        with self._stream_place():
            request = Request("GET", path, accept=accept or JSON, seconds=total_seconds)
            response = await self._insist(_Exchange(request), self._begin)
            chunks = self._chunks(response, request)
            self._open.add(response)
            try:
                yield chunks
            finally:
                self._open.discard(response)
                await chunks.aclose()
                response.close()

    @contextlib.asynccontextmanager
    async def websocket(self, path: str, protocols: Sequence[str]) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Hold a WebSocket open; `protocols` in order of preference. Raises the typed ApiError of a refused upgrade."""
        with self._stream_place():
            socket = await self._upgrade(path, protocols)
            try:
                yield socket
            finally:
                await socket.close()

    async def close(self) -> None:
        """Close every connection; streams that are open end with StreamError."""
        for response in self._open:
            # aiohttp lets go of a connection that it closes itself without a word to who reads from it.
            response.content.set_exception(ConnectionResetError("the client was closed"))
        await self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _upgrade(self, path: str, protocols: Sequence[str]) -> aiohttp.ClientWebSocketResponse:
        import aiohttp  # noqa: PLC0415 see connection.py

        credentials = self.config.credentials
        credential = await credentials.current()
        try:
            return await self._open_socket(path, credential, protocols)
        except aiohttp.WSServerHandshakeError as refusal:
            if refusal.status != 401 or not credentials.refused(credential):
                raise await self._explanation(path, refusal.status) from None
        try:
            return await self._open_socket(path, await credentials.current(), protocols)
        except aiohttp.WSServerHandshakeError as refusal:
            raise await self._explanation(path, refusal.status) from None

    async def _open_socket(
        self, path: str, credential: Credential, protocols: Sequence[str]
    ) -> aiohttp.ClientWebSocketResponse:
        import aiohttp  # noqa: PLC0415 see connection.py

        try:
            socket = await self._connection.websocket(path, credential, protocols)
        except aiohttp.WSServerHandshakeError as refusal:
            self._note("GET", refusal.status)
            raise
        except KubeError:
            self._note("GET", NO_ANSWER)
            raise
        self._note("GET", 101)
        return socket

    async def _explanation(self, path: str, code: int) -> KubeError:
        """Find out why an upgrade was refused, since aiohttp drops the answer's body.

        The same GET without the upgrade runs nothing, but the server checks the object and our rights first, and its
        Status tells what is wrong.
        """
        try:
            await self.request("GET", path)
        except ApiError as error:
            if error.code == code:
                return error
        return error_from_status(b"the server refused the WebSocket and gave no reason", code)

    async def _insist(self, exchange: _Exchange, go: Callable[[Request, Credential], Awaitable[T]]) -> T:
        """Send, by `go`, until there is an answer of success or a reason to stop."""
        began = self._clock.monotonic()
        credentials = self.config.credentials
        attempt = 0
        refreshed = in_doubt = False
        while True:
            attempt += 1
            credential = await credentials.current()
            try:
                return await self._send(exchange, credential, go)
            except KubeError as error:
                in_doubt = error.in_doubt = error.in_doubt or in_doubt
                if isinstance(error, UnauthorizedError) and not refreshed:
                    refreshed = True
                    self._connection.recheck_files()
                    if credentials.refused(credential):
                        continue
                pause = self._pause(error, attempt, idempotent=exchange.idempotent)
                late = self._clock.monotonic() - began + (pause or 0) > self.settings.patience_seconds
                if pause is None or late:
                    raise
                log.info(
                    "request is sent again",
                    extra={
                        "method": exchange.request.method,
                        "path": exchange.request.path,
                        "pause": pause,
                        "error": str(error),
                    },
                )
            await self._clock.sleep(pause)

    async def _send(
        self, exchange: _Exchange, credential: Credential, go: Callable[[Request, Credential], Awaitable[T]]
    ) -> T:
        """Send once, within the limit."""
        ticket = await self.limiter.acquire()
        pushed_back = False
        try:
            if exchange.permit is not None:
                exchange.permit()
            return await go(exchange.request, credential)
        except KubeError as error:
            pushed_back = _is_push_back(error)
            raise
        finally:
            self.limiter.release(ticket, pushed_back=pushed_back)

    async def _ask(self, request: Request, credential: Credential) -> Answer:
        """Return the answer of success, read whole."""
        try:
            answer = await self._connection.exchange(request, credential)
        except KubeError:
            self._note(request.method, NO_ANSWER)
            raise
        self._note(request.method, answer.status)
        if not 200 <= answer.status < 300:
            raise error_from_status(answer.body, answer.status, answer.headers)
        if "Warning" in answer.headers:
            self._pass_on_warnings(answer.headers.getall("Warning"))
        return answer

    async def _begin(self, request: Request, credential: Credential) -> aiohttp.ClientResponse:
        """Open a stream: its own seconds bound its whole life, so its beginning needs a bound apart."""
        seconds = self.settings.read_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._open_stream(request, credential)
        except TimeoutError as error:
            text = f"{request.what}: the stream did not begin within {seconds} s"
            raise TransportError(text, timed_out=True) from error

    async def _open_stream(self, request: Request, credential: Credential) -> aiohttp.ClientResponse:
        try:
            response = await self._connection.send(request, credential)
        except KubeError:
            self._note(request.method, NO_ANSWER)
            raise
        self._note(request.method, response.status)
        if 200 <= response.status < 300:
            return response
        try:
            with self._connection.translated(request):
                body = await response.read()
        except BaseException:
            response.close()
            raise
        raise error_from_status(body, response.status, response.headers)

    async def _chunks(self, response: aiohttp.ClientResponse, request: Request) -> AsyncGenerator[bytes, None]:
        with self._connection.translated(request, streaming=True):
            async for chunk in response.content.iter_any():
                yield chunk

    def _pause(self, error: KubeError, attempt: int, *, idempotent: bool) -> float | None:
        """Return the seconds to wait before sending again, None if that is unsafe, useless or too often."""
        settings = self.settings
        if attempt >= settings.attempts or not _may_repeat(error, idempotent=idempotent):
            return None
        longest = min(settings.backoff_most_seconds, settings.backoff_seconds * 2.0 ** (attempt - 1))
        pause = longest * self._jitter()
        if isinstance(error, ApiError) and error.retry_after is not None:
            pause = max(pause, error.retry_after * (1 + settings.retry_after_jitter * self._jitter()))
        return pause

    @contextlib.contextmanager
    def _stream_place(self) -> Iterator[None]:
        if self._streams >= self.settings.streams:
            text = f"{self._streams} streams are open already: close some, or raise TransportSettings.streams"
            raise StreamError(text)
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    def _note(self, method: str, code: int | str) -> None:
        if self._requested is not None:
            self._requested(method, self._host, code)

    def _pass_on_warnings(self, warnings: Sequence[str]) -> None:
        """Log what the server warns of (a deprecated field, say), each text once."""
        for warning in warnings:
            if warning not in self._warned and len(self._warned) < 1000:
                self._warned.add(warning)
                log.warning("the API server warns: %s", _warning_text(warning))


def _warning_text(header: str) -> str:
    """Return what a Warning header says: `299 - "text"` with its quotes escaped, nothing in it that moves a cursor."""
    quoted = _WARNING.fullmatch(header)
    text = re.sub(r"\\(.)", r"\1", quoted["text"]) if quoted else header
    return "".join(char if char.isprintable() else " " for char in text)


def _may_repeat(error: KubeError, *, idempotent: bool) -> bool:
    if isinstance(error, ApiError):
        if isinstance(error, TooManyRequestsError):
            return True
        if isinstance(error, UnavailableError) and error.retry_after is not None:
            return True
        return idempotent and isinstance(error, UnavailableError | ServerTimeoutError)
    if isinstance(error, ConnectError):
        return error.retryable
    return idempotent and isinstance(error, TransportError)


def _is_push_back(error: KubeError) -> bool:
    if isinstance(error, ApiError):
        return isinstance(error, TooManyRequestsError | UnavailableError | ServerTimeoutError)
    return isinstance(error, TransportError) and error.timed_out
