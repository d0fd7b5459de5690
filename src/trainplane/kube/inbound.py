"""One connection of a listener: aiohttp's protocol, that tells how far a request has come and keeps its deadlines.

    opening ─► waiting ─► headers ─► body ─► answering ─► waiting ─► …
    handshake  idle       deadline   deadline  deadline while the peer does not read

Deadlines are for a whole phase, not for the silence in it: who sends a byte a minute is as late as who sends none.
They are looked at by the listener, all at once, so that a review pays for no timer.
"""

from __future__ import annotations

import math
import traceback
from typing import TYPE_CHECKING, Any, Final, Protocol

from aiohttp import web
from aiohttp.http import HttpProcessingError

if TYPE_CHECKING:
    import asyncio

    from trainplane.kube.capacity import Capacity

BUFFER_BYTES: Final = 64 << 10
"""Bytes that wait to be sent, or to be read by a handler, before the other side is held back."""
LINGER_SECONDS: Final = 2.0
"""How long what still comes is read and dropped after a request was answered before its end: a peer that is cut off
while it sends may never see the answer."""
HEADERS: Final = 1024
"""Header lines of a request: the API server sends one for each group of a user's, and some have hundreds."""


class Limits(Protocol):
    """Seconds that a connection has for each phase, as `ListenerSettings` explains them."""

    @property
    def idle_seconds(self) -> float:
        """Between requests."""

    @property
    def header_seconds(self) -> float:
        """For headers."""

    @property
    def body_seconds(self) -> float:
        """For a body."""

    @property
    def send_seconds(self) -> float:
        """For each part of an answer."""


class Inbound(web.RequestHandler):
    """A connection that somebody made to us."""

    __slots__ = (
        "_answering",
        "_capacity",
        "_draining",
        "_is_early",
        "_limits",
        "_receiving",
        "_unread",
        "_wire",
        "deadline",
        "opening",
    )

    def __init__(
        self,
        server: web.Server,
        capacity: Capacity[Inbound],
        limits: Limits,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=limits.idle_seconds,
            access_log=None,  # type: ignore[arg-type] # aiohttp's way to have none
            lingering_time=LINGER_SECONDS,
            read_bufsize=BUFFER_BYTES,
            max_headers=HEADERS,
            auto_decompress=False,  # no API server compresses, and a bomb would be judged by its small form
        )
        self.deadline = math.inf
        """When the present phase must be over, on the loop's clock."""
        self.opening: asyncio.Task[None] | None = None
        """Makes the connection, with TLS by its handshake; None once that is done."""
        self._capacity = capacity
        self._limits = limits
        self._wire: asyncio.Transport | None = None
        self._receiving = False
        self._answering = False
        self._draining = False
        self._is_early = False
        self._unread = 0

    def cut(self) -> None:
        """Close the connection now; nothing is sent any more, nor waited for."""
        if self.opening is not None:
            self.opening.cancel()
        if self._wire is not None:
            self._wire.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over a connection whose handshake is done."""
        self._wire = transport  # type: ignore[assignment] # TCP's, with TLS or without
        self._wire.set_write_buffer_limits(high=BUFFER_BYTES)  # type: ignore[union-attr] # as above
        self._capacity.advance(self)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Give the connection's place to others."""
        self._capacity.leave(self)
        super().connection_lost(exc)
        self._wire = None

    def data_received(self, data: bytes) -> None:
        """Take bytes that came, if there is room for them."""
        if not data or self._admits(len(data)):  # empty: aiohttp looks again at what it has
            super().data_received(data)

    def _admits(self, size: int) -> bool:
        if self._answering:
            # A peer that has read an answer may ask again before its handler has returned. What came is kept, some KB
            # that the system gave at once, and no more is read before that.
            self._is_early = True
            if self._wire is not None:
                self._wire.pause_reading()
            return True
        if self._draining:
            return True
        if not self._receiving:
            self._receiving = True
            self.deadline = self._loop.time() + self._limits.header_seconds
            self._capacity.advance(self)
        return self._capacity.hold(self, size)

    def asked(self, payload: Any) -> None:
        """Note that a request's headers are there, and its body follows."""
        self.deadline = self._loop.time() + self._limits.body_seconds
        self._capacity.advance(self)
        payload.on_eof(self._is_whole)

    def _is_whole(self) -> None:
        if not self._draining:
            self._receiving = False
            self._answering = True
            self.deadline = math.inf
            self._capacity.answer(self)

    async def finish_response(self, request: web.BaseRequest, resp: Any, start_time: float | None) -> Any:
        """Send a response to its end, and then wait for the next request."""
        if not request.content.is_eof():
            self._draining = True
            resp.force_close()
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self._answering = False
            self._capacity.finish(self)
            self._receiving, self._is_early = self._is_early, False
            if self._receiving and self._wire is not None:
                self.deadline = self._loop.time() + self._limits.header_seconds
                self._wire.resume_reading()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is no HTTP, and let go who left: neither is our fault, so neither may fill our log.

        The request's stream keeps the exception and its frames keep the request: half-sent bodies would wait in that
        circle for the garbage collector, which does not see how large they are.
        """
        if isinstance(exc, ConnectionError):
            traceback.clear_frames(exc.__traceback__)
            exc.__traceback__ = None
            self.cut()
            return web.Response(status=400)  # to nobody
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        response = web.Response(status=status, text="this is no HTTP request that can be read\n")
        response.force_close()
        return response

    def pause_writing(self) -> None:
        """Give the peer a deadline to read what waits for it."""
        self._await_reading(self._loop.time())
        super().pause_writing()

    def is_late(self, now: float) -> bool:
        """Return whether the present phase should be over.

        A long answer may wait in one piece. Who reads a buffer of it in time has as much time for the next one. With
        TLS such a piece waits below, where asyncio shows nothing: there the idle time bounds it.
        """
        wire = self._wire
        if self._unread and wire is not None and wire.get_write_buffer_size() <= self._unread - BUFFER_BYTES:
            self._await_reading(now)
        return self.deadline <= now

    def _await_reading(self, now: float) -> None:
        self.deadline = now + self._limits.send_seconds
        self._unread = self._wire.get_write_buffer_size() if self._wire is not None else 0

    def resume_writing(self) -> None:
        """Go on: the peer has read."""
        self.deadline, self._unread = math.inf, 0
        super().resume_writing()
