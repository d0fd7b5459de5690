"""The port that everybody knows: gRPC health for the kubelet, and Flight relayed to the servers behind it.

Flight's Python server offers no second service on its port, and a gRPC probe asks for `grpc.health.v1.Health` there.
So the front listens instead and hands Flight's calls on as bytes, unread: on the wire all ten are streams both ways,
and one relay serves them. Rows do not come this way: endpoints name the workers' own ports, where C++ answers. A
client that asks here for rows all the same gets them, more slowly.

Everything runs on one event loop: streams that stand still cost memory and no thread, and never keep a probe waiting.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Final

import grpc
import grpc.aio

from trainplane.cache.errors import InvalidError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from typing import Self

    from trainplane.cache.serving import Door

FLIGHT: Final = "/arrow.flight.protocol.FlightService/"
_HEALTH: Final = "/grpc.health.v1.Health/Check"
_DATA: Final = frozenset({"DoGet", "DoPut", "DoExchange"})
_SERVING: Final = b"\x08\x01"
_NOT_SERVING: Final = b"\x08\x02"
"""`HealthCheckResponse` of either status: one field of one byte, so no library is needed to write it."""
MOST_STREAMS: Final = 1024
LARGEST: Final = 256 << 20
"""Bytes of one message: of the largest block that a manifest may aim at."""
_OPTIONS: Final = [
    ("grpc.max_receive_message_length", LARGEST),
    ("grpc.max_send_message_length", LARGEST),
    ("grpc.so_reuseport", 0),
]
_CODES: Final = {
    "Partition": grpc.StatusCode.OUT_OF_RANGE,
    "Invalid": grpc.StatusCode.INVALID_ARGUMENT,
    "NotFound": grpc.StatusCode.NOT_FOUND,
    "Disk": grpc.StatusCode.RESOURCE_EXHAUSTED,
}
"""Flight's server has no way to say these; clients of other languages know an error by its code alone."""
_START_SECONDS: Final = 30.0


class Behind:
    """A Flight server behind the front, on this machine."""

    def __init__(self, port: int, roots: bytes = b"", name: str = "") -> None:
        self.port, self._roots, self._name = port, roots, name

    def channel(self) -> Any:
        """Return a way to it; with TLS it must show the certificate that clients would see under `name`."""
        address = f"127.0.0.1:{self.port}"
        if not self._roots:
            return grpc.aio.insecure_channel(address, options=_OPTIONS)
        trusted = grpc.ssl_channel_credentials(root_certificates=self._roots)
        options = [*_OPTIONS, ("grpc.ssl_target_name_override", self._name)]
        return grpc.aio.secure_channel(address, trusted, options=options)


class Front:
    """Listens where a cache is looked for."""

    def __init__(self, door: Door, *, words: Behind, rows: Behind, ready: Callable[[], bool]) -> None:
        self._door, self._words, self._rows, self._ready = door, words, rows, ready
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="front", daemon=True)
        self._server: Any = None
        self._channels: list[Any] = []

    def __enter__(self) -> Self:
        self._thread.start()
        self._wait(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._wait(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START_SECONDS)
        self._loop.close()

    def _wait(self, coroutine: Any) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_START_SECONDS)

    async def _start(self) -> None:
        self._server = grpc.aio.server(options=_OPTIONS)
        self._channels = [self._words.channel(), self._rows.channel()]
        self._server.add_generic_rpc_handlers((_Health(self._ready), _Flight(*map(_Relay, self._channels))))
        address = f"{self._door.host}:{self._door.port}"
        try:
            if self._door.certificate:
                pair = [(self._door.key, self._door.certificate)]
                self.port = self._server.add_secure_port(address, grpc.ssl_server_credentials(pair))
            else:
                self.port = self._server.add_insecure_port(address)
        except RuntimeError:
            raise UnreachableError(f"nobody can listen at {address}", "see whether something else does") from None
        await self._server.start()

    async def _stop(self) -> None:
        await self._server.stop(grace=0)
        for channel in self._channels:
            await channel.close()


class _Health(grpc.GenericRpcHandler):  # type: ignore[misc] # grpc has no types
    """Answers a probe."""

    def __init__(self, ready: Callable[[], bool]) -> None:
        self._ready = ready

    def service(self, details: Any) -> Any:
        """Return who answers a call, if it is a probe."""
        return grpc.unary_unary_rpc_method_handler(self._check) if details.method == _HEALTH else None

    async def _check(self, request: bytes, context: Any) -> bytes:
        if request not in {b"", _named(""), _named(FLIGHT.strip("/"))}:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such service here: ask without a name")
        return _SERVING if self._ready() else _NOT_SERVING


class _Flight(grpc.GenericRpcHandler):  # type: ignore[misc] # grpc has no types
    """Knows which server behind answers which of Flight's calls."""

    def __init__(self, words: _Relay, rows: _Relay) -> None:
        self._words, self._rows = words, rows

    def service(self, details: Any) -> Any:
        """Return who answers a call, if it is one of Flight's."""
        if not details.method.startswith(FLIGHT):
            return None
        relay = self._rows if details.method.removeprefix(FLIGHT) in _DATA else self._words
        headers = _passed_on(details.invocation_metadata)

        async def relayed(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            async for message in relay.call(details.method, headers, requests, context):
                yield message

        return grpc.stream_stream_rpc_method_handler(relayed)


class _Relay:
    """Hands calls on to one server, message by message: neither side gets ahead of the other."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._open = 0

    async def call(
        self, method: str, headers: Sequence[tuple[str, Any]], requests: AsyncIterator[bytes], context: Any
    ) -> AsyncIterator[bytes]:
        """Yield what the server answers; end as it ended."""
        if self._open >= MOST_STREAMS:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{MOST_STREAMS} calls are under way: try again")
        self._open += 1
        call = self._channel.stream_stream(method)(requests, metadata=headers, timeout=context.time_remaining())
        try:
            async for message in call:
                yield message
            context.set_trailing_metadata(_passed_on(await call.trailing_metadata()))
        except grpc.aio.AioRpcError as error:
            await context.abort(
                code_of(error.code(), error.details()), error.details(), _passed_on(error.trailing_metadata())
            )
        finally:
            self._open -= 1
            call.cancel()


def code_of(code: Any, words: str | None) -> Any:
    """Return the code of an error: as its cause says, where Flight's server has no code for it."""
    cause = (words or "").partition("[trainplane ")[2].partition("]")[0]
    return _CODES.get(cause, code)


def _passed_on(metadata: Any) -> tuple[tuple[str, Any], ...]:
    """Return the headers that mean something to the other side; gRPC writes its own."""
    return tuple((name, value) for name, value in metadata or () if not name.startswith(("grpc-", "user-agent")))


def _named(service: str) -> bytes:
    """Return a `HealthCheckRequest` for a service."""
    name = service.encode()
    if len(name) > 127:
        raise InvalidError("the name of a service is too long")
    return b"\x0a" + bytes([len(name)]) + name
