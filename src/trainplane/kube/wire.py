"""Requests with whole answers over HTTP/1.1, on connections that are kept: what most of a controller's traffic is.

    Wire ── Line   one connection: one request at a time, then its answer
              └─ Reading   the bytes of an answer, parsed as they come; pure

A general client builds a request from parts that may all differ, streams bodies either way, and has a task, a timer and
half a dozen objects for each; that was six times the CPU of TLS and the bytes themselves. Here a request is one write
and an answer one future. Streams, WebSockets, proxies, compression and large bodies stay with aiohttp (`connection`).

A line is used again only after an answer that was read to its end and leaves nothing behind; whatever else happens to
it, a timeout, a cancel, a byte too many, closes it. What is no HTTP is an error and never guessed at. Raises what the
system raises: ssl.SSLError, TimeoutError, ConnectionError, and `NotConnectedError` while nothing was sent yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from multidict import CIMultiDict

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from typing import Any

    from multidict import MultiMapping

HEAD_BYTES: Final = 64 << 10
"""Bytes of an answer's headers, and of what stands around its chunks; API servers send less than one KB."""
BODY_BYTES: Final = 1 << 30
"""Bytes of an answer's body, so that no server fills our memory: a list of 100,000 objects has a third of it."""
SHUTDOWN_SECONDS: Final = 0.5
"""How long a peer may take to say goodbye on a connection that is no longer used."""

_STATUS: Final = re.compile(r"HTTP/1\.([01]) ([1-9][0-9]{2})(?: .*)?")
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_LENGTH: Final = re.compile(r"[0-9]{1,18}")
_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?")
_IN_USE: Final = re.compile(r"File descriptor \d+ is used by transport")
_NO_BODY: Final = frozenset({204, 304})


class NotConnectedError(ConnectionError):
    """No connection was made, so nothing was sent; `timed_out` if that took too long."""

    def __init__(self, text: str, *, timed_out: bool = False) -> None:
        super().__init__(text)
        self.timed_out = timed_out


@contextlib.contextmanager
def connecting() -> Iterator[None]:
    """Raise NotConnectedError for the RuntimeError with which uvloop refuses the socket of a new connection.

    uvloop can keep a transport whose descriptor the system has given to a new socket (MagicStack/uvloop#653). Nothing
    was sent, and the next try gets another descriptor.
    """
    try:
        yield
    except RuntimeError as error:
        if _IN_USE.match(str(error)) is None:
            raise
        raise NotConnectedError("the event loop refused the socket") from None


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    headers: MultiMapping[str]
    body: bytes


class Reading:
    """One answer as it comes: `feed` returns it once it is whole; raises ConnectionError for what is none.

    `leftover` is what came after it, and `is_last` whether the server ends the connection with it.
    """

    def __init__(self) -> None:
        self.is_last = False
        self.leftover = 0
        self._buffer = bytearray()
        self._status = 0
        self._headers: CIMultiDict[str] | None = None
        self._left: int | None = None
        """Bytes of the body, or of its chunk with the line's end after it, that are to come; None: until the end."""
        self._is_chunked = False
        self._pieces: list[bytes] = []
        self._size = 0
        """Bytes of the chunks so far, with the one that is to come."""
        self._in_trailer = False

    def feed(self, data: bytes) -> Answer | None:
        """Take bytes; return the answer that they end."""
        self._buffer += data
        if self._headers is None and not self._take_head():
            return None
        if self._is_chunked:
            return self._whole() if self._take_chunks() else None
        if self._left is None:
            _check_size(len(self._buffer))
        if self._left is None or len(self._buffer) < self._left:
            return None
        self.leftover = len(self._buffer) - self._left
        self._pieces.append(bytes(self._buffer[: self._left]))
        return self._whole()

    def end(self) -> Answer | None:
        """Return the answer that the end of the connection ends; None if that cut it off."""
        if self._headers is None or self._is_chunked or self._left is not None:
            return None
        self._pieces.append(bytes(self._buffer))
        return self._whole()

    def _whole(self) -> Answer:
        return Answer(self._status, self._headers or CIMultiDict(), b"".join(self._pieces))

    def _take_head(self) -> bool:
        """Parse the headers if all are there; those of an interim answer (1xx) are dropped."""
        while True:
            end = self._buffer.find(b"\r\n\r\n", 0, HEAD_BYTES)
            if end < 0:
                if len(self._buffer) >= HEAD_BYTES:
                    raise ConnectionError("the answer has more headers than any API server sends")
                return False
            text = self._buffer[:end].decode("utf-8", "surrogateescape")
            del self._buffer[: end + 4]
            version, status, headers = _head(text)
            if status == 101:
                raise ConnectionError("the answer changes to another protocol, which nobody asked for")
            if status >= 200:
                tokens = {word.strip().lower() for word in ",".join(headers.getall("Connection", ())).split(",")}
                self.is_last = "close" in tokens or (version == "0" and "keep-alive" not in tokens)
                self._status, self._headers = status, headers
                self._frame(headers)
                return True

    def _frame(self, headers: CIMultiDict[str]) -> None:
        """Find out where the body ends."""
        coding = [one.lower() for one in headers.getall("Transfer-Encoding", ())]
        lengths = set(headers.getall("Content-Length", ()))
        if self._status in _NO_BODY:
            self._left = 0
        elif coding:
            if coding != ["chunked"] or lengths:
                raise ConnectionError("the answer does not say clearly where it ends")
            self._is_chunked, self._left = True, 0
        elif lengths:
            length = lengths.pop()
            if lengths or _LENGTH.fullmatch(length) is None:
                raise ConnectionError("the answer does not say clearly how long it is")
            self._left = int(length)
            _check_size(self._left)
        else:
            self._left, self.is_last = None, True

    def _take_chunks(self) -> bool:
        """Take the chunks that are there; True after the last one and its trailer."""
        buffer = self._buffer
        while True:
            if self._left:
                if len(buffer) < self._left:
                    return False
                if buffer[self._left - 2 : self._left] != b"\r\n":
                    raise ConnectionError("the answer has a chunk that does not end where it says")
                self._pieces.append(bytes(buffer[: self._left - 2]))
                del buffer[: self._left]
                self._left = 0
            end = buffer.find(b"\r\n", 0, HEAD_BYTES)
            if end < 0:
                if len(buffer) >= HEAD_BYTES:
                    raise ConnectionError("the answer has a chunk whose size never ends")
                return False
            line = bytes(buffer[:end])
            del buffer[: end + 2]
            if self._in_trailer:
                if not line:
                    self.leftover = len(buffer)
                    return True
                continue
            size = _CHUNK.fullmatch(line)
            if size is None:
                raise ConnectionError("the answer has a chunk without a size")
            length = int(size[1], 16)
            self._size += length
            _check_size(self._size)
            self._in_trailer = length == 0
            self._left = length + 2 if length else 0


def _check_size(size: int) -> None:
    if size > BODY_BYTES:
        raise ConnectionError(f"the answer has more than {BODY_BYTES >> 20} MiB")


def _head(text: str) -> tuple[str, int, CIMultiDict[str]]:
    """Return the minor version, the status and the headers of an answer."""
    first, *lines = text.split("\r\n")
    status = _STATUS.fullmatch(first)
    if status is None or text.count("\r") != len(lines) or text.count("\n") != len(lines):
        raise ConnectionError("the answer is no HTTP")
    headers: CIMultiDict[str] = CIMultiDict()
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or _TOKEN.fullmatch(name) is None:
            raise ConnectionError("the answer has a header that is none")
        headers.add(name, value.strip(" \t"))
    return status[1], int(status[2]), headers


class Line(asyncio.Protocol):
    """One connection."""

    def __init__(self, context: ssl.SSLContext | None, on_lost: Callable[[Line], None]) -> None:
        self.context = context
        """What it was made with: another context, another identity."""
        self.idle_since = 0.0
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._reading = Reading()
        self._answer: asyncio.Future[Answer] | None = None

    def ask(self, request: bytes, loop: asyncio.AbstractEventLoop) -> asyncio.Future[Answer]:
        """Send a request; the answer comes by the future."""
        answer: asyncio.Future[Answer] = loop.create_future()
        if self._transport is None:
            answer.set_exception(ConnectionResetError("the server closed the connection"))
            return answer
        self._reading, self._answer = Reading(), answer
        self._transport.write(request)
        return answer

    @property
    def may_go_on(self) -> bool:
        """Whether another request may be sent here."""
        transport = self._transport
        return (
            transport is not None
            and self._answer is None
            and not transport.is_closing()
            and not (self._reading.is_last or self._reading.leftover or transport.get_write_buffer_size())
        )

    def close(self, *, at_once: bool = False) -> None:
        """Close it; `at_once` without a goodbye, for who is not to be trusted with one."""
        if self._transport is not None:
            (self._transport.abort if at_once else self._transport.close)()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport  # type: ignore[assignment] # TCP's, with TLS or without

    def data_received(self, data: bytes) -> None:
        """Take bytes of the answer that is waited for; nobody waits for others."""
        waiting = self._answer
        if waiting is None:
            self.close(at_once=True)
            return
        try:
            answer = self._reading.feed(data)
        except ConnectionError as error:
            self._settle(waiting, error)
            self.close(at_once=True)
            return
        if answer is not None:
            self._settle(waiting, answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """End; who waits for an answer has none, unless this is how it ends."""
        self._transport = None
        if self._answer is not None:
            why = str(exc) if exc is not None else "the server closed it before it answered"
            ended = None if exc is not None else self._reading.end()
            self._settle(self._answer, ended or ConnectionResetError(why))
        self._on_lost(self)

    def _settle(self, waiting: asyncio.Future[Answer], outcome: Answer | Exception) -> None:
        self._answer = None
        if waiting.done():
            return  # cancelled: nobody wants it any more
        if isinstance(outcome, Exception):
            waiting.set_exception(outcome)
        else:
            waiting.set_result(outcome)


class Wire:
    """The lines to one server. Use within one event loop.

    Args:
        host: name or address.
        port: TCP port.
        make_socket: returns a socket for an address, with the options that it should have.
        connect_seconds: for name, TCP and TLS together; addresses of one name share them.
        idle_seconds: how long an unused line is kept.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        make_socket: Callable[[tuple[Any, ...]], socket.socket],
        connect_seconds: float,
        idle_seconds: float,
    ) -> None:
        self._host = host
        self._port = port
        self._make_socket = make_socket
        self._connect_seconds = connect_seconds
        self._idle_seconds = idle_seconds
        self._lines: set[Line] = set()
        self._idle: deque[Line] = deque()
        self._sweeping: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def exchange(
        self, request: bytes, context: ssl.SSLContext | None, server_name: str | None, seconds: float | None
    ) -> Answer:
        """Send a request as it stands and return its answer, within so many seconds."""
        loop = asyncio.get_running_loop()
        line: Line | None = None
        try:
            async with asyncio.timeout(seconds):
                line = self._kept(context, loop.time()) or await self._connect(loop, context, server_name)
                return await line.ask(request, loop)
        finally:
            if line is not None:
                self._give_back(line, loop)

    def close(self) -> None:
        """Close every line, also one that is being made; what is being asked is answered by ConnectionError."""
        self._is_closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._idle.clear()
        for line in list(self._lines):
            line.close(at_once=True)

    def _kept(self, context: ssl.SSLContext | None, now: float) -> Line | None:
        """Return the line that was used last, so that the others may go; those of another identity are closed."""
        while self._idle:
            line = self._idle.pop()
            if line.context is context and line.may_go_on and now - line.idle_since < self._idle_seconds:
                return line
            line.close()
        return None

    def _give_back(self, line: Line, loop: asyncio.AbstractEventLoop) -> None:
        if not line.may_go_on:
            line.close(at_once=True)
            return
        line.idle_since = loop.time()
        self._idle.append(line)
        if self._sweeping is None:
            self._sweeping = loop.call_later(self._idle_seconds, self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close lines that nobody used for long: the oldest are first."""
        self._sweeping = None
        now = loop.time()
        while self._idle and now - self._idle[0].idle_since >= self._idle_seconds:
            self._idle.popleft().close()
        if self._idle:
            wait = self._idle[0].idle_since + self._idle_seconds - now
            self._sweeping = loop.call_later(wait, self._sweep, loop)

    def _lost(self, line: Line) -> None:
        self._lines.discard(line)

    async def _connect(
        self, loop: asyncio.AbstractEventLoop, context: ssl.SSLContext | None, server_name: str | None
    ) -> Line:
        try:
            async with asyncio.timeout(self._connect_seconds):
                connected = await self._reach(loop)
                line = Line(context, self._lost)
                secured: dict[str, Any] = {}
                if context is not None:
                    secured = {
                        "ssl": context,
                        "server_hostname": server_name or self._host.rstrip("."),
                        "ssl_handshake_timeout": self._connect_seconds,
                        "ssl_shutdown_timeout": SHUTDOWN_SECONDS,
                    }
                try:
                    with connecting():
                        await loop.create_connection(lambda: line, sock=connected, **secured)
                except BaseException:
                    connected.close()
                    raise
        except TimeoutError:
            raise NotConnectedError("no connection in time", timed_out=True) from None
        except ConnectionError as error:
            raise error if isinstance(error, NotConnectedError) else NotConnectedError(str(error)) from None
        if self._is_closed:
            line.close(at_once=True)
            raise NotConnectedError("the client was closed")
        self._lines.add(line)
        return line

    async def _reach(self, loop: asyncio.AbstractEventLoop) -> socket.socket:
        """Return a socket that is connected to the first address of the name that answers in its share of the time."""
        try:
            found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise NotConnectedError(str(error)) from None
        trouble: OSError = NotConnectedError(f"{self._host} has no address")
        for address in found:
            made = self._make_socket(address)
            made.setblocking(False)
            try:
                async with asyncio.timeout(self._connect_seconds / len(found)):
                    with connecting():
                        await loop.sock_connect(made, address[4])
            except (OSError, TimeoutError) as error:
                made.close()
                trouble = error
            except BaseException:
                made.close()
                raise
            else:
                return made
        is_late = isinstance(trouble, TimeoutError)
        raise NotConnectedError(str(trouble) or "no connection in time", timed_out=is_late) from None
