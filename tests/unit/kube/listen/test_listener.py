"""The listener before callers that mean harm, on raw sockets: deadlines, places and bytes, with TLS and without."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import os
import resource
import socket
import ssl
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest
from aiohttp import web

from trainplane.kube import inbound, listener
from trainplane.kube.certificates import ServingContext
from trainplane.kube.listener import Listener, ListenerSettings, body_of
from trainplane.kube.pki import CertificatePolicy, renew

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

PATIENCE = 60
"""Seconds for what must happen: for a bug, not for pacing."""
MATERIAL, _ = renew(None, CertificatePolicy(("localhost",)), datetime.now(UTC))
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def tls(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


class Peer:
    """Somebody who connected."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        if self.writer.transport.is_closing():  # uvloop's transports raise RuntimeError then
            raise ConnectionResetError
        self.writer.write(data)
        await self.writer.drain()

    async def line(self) -> bytes:
        """Return the first line of the next answer, which has a short body."""
        async with asyncio.timeout(PATIENCE):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await self.reader.readexactly(length)
        return head.partition(b"\r\n")[0]

    async def ask(self, request: bytes = GET) -> bytes:
        await self.send(request)
        return await self.line()

    async def until_cut(self) -> None:
        """Wait until the server has ended the connection."""
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionError):
                while await self.reader.read(1 << 16):
                    pass


class Server:
    """A listener, and who connects to it."""

    def __init__(self, handler: Any, *, tls: bool, **settings: Any) -> None:
        self.client: ssl.SSLContext | None = None
        context = None
        if tls:
            serving = ServingContext()
            serving.load(MATERIAL.tls_crt, MATERIAL.tls_key)
            context = serving.context
            self.client = ssl.create_default_context(cadata=MATERIAL.ca_crt.decode())
        settings = {"stop_seconds": 0.1, **settings}
        self.listener = Listener(handler, ListenerSettings(0, "127.0.0.1", **settings), tls=context)
        self._peers: list[Peer] = []

    async def __aenter__(self) -> Self:
        await self.listener.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for peer in self._peers:
            peer.writer.transport.abort()
        await self.listener.stop()

    async def connect(self, *, bare: bool = False) -> Peer:
        context = None if bare else self.client
        name = "localhost" if context else None
        peer = Peer(*await asyncio.open_connection("127.0.0.1", self.listener.port, ssl=context, server_hostname=name))
        self._peers.append(peer)
        return peer

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():  # noqa: ASYNC110 what is waited for has no event
                await asyncio.sleep(0.005)


async def ok(_: web.BaseRequest) -> web.Response:
    return web.Response(text="ok")


async def read(request: web.BaseRequest) -> web.Response:
    body = await body_of(request, 1 << 20)
    return web.Response(text=str(len(body)))


def post(length: int | None, *lines: str) -> bytes:
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return "\r\n".join(("POST / HTTP/1.1", "Host: x", size, *lines, "", "")).encode()


# -- deadlines ------------------------------------------------------------------------------------------------------


async def test_a_handshake_that_does_not_come_to_its_end_is_cut() -> None:
    async with Server(ok, tls=True, handshake_seconds=0.2) as server:
        silent, half = await server.connect(bare=True), await server.connect(bare=True)
        await half.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        await silent.until_cut()
        await half.until_cut()
        await server.until(lambda: not len(server.listener.capacity))


@pytest.mark.parametrize("drips", [False, True])
async def test_headers_have_a_deadline_as_a_whole(tls: bool, drips: bool) -> None:
    async with Server(ok, tls=tls, header_seconds=0.3) as server:
        peer = await server.connect()
        await peer.send(GET[:-2])
        if drips:
            with contextlib.suppress(ConnectionError, RuntimeError):  # uvloop's, of a connection that was cut
                while not peer.reader.at_eof():
                    await peer.send(b"X")
                    await asyncio.sleep(0.02)
        await peer.until_cut()
        assert server.listener.capacity.cuts == {"late": 1}


@pytest.mark.parametrize("drips", [False, True])
@pytest.mark.parametrize("length", [1000, None])
async def test_a_body_has_a_deadline_as_a_whole(tls: bool, drips: bool, length: int | None) -> None:
    async with Server(read, tls=tls, body_seconds=0.3, header_seconds=PATIENCE) as server:
        peer = await server.connect()
        await peer.send(post(length) + b"1\r\nx\r\n")
        if drips:
            with contextlib.suppress(ConnectionError, RuntimeError):  # uvloop's, of a connection that was cut
                while not peer.reader.at_eof():
                    await peer.send(b"1\r\nx\r\n")
                    await asyncio.sleep(0.02)
        await peer.until_cut()
        assert server.listener.capacity.cuts == {"late": 1}


async def test_whoever_does_not_read_the_answer_is_cut(tls: bool) -> None:
    async def endless(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 10_000)

    async with Server(endless, tls=tls, send_seconds=0.3) as server:
        peer = await server.connect()
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined] # it reads, too
        await peer.send(GET)
        await server.until(lambda: server.listener.capacity.cuts["late"] == 1)
        await server.until(lambda: not len(server.listener.capacity))


async def test_a_slow_reader_that_reads_is_not_cut(tls: bool) -> None:
    size = 24 << 20  # more than kernels hold of a connection

    async def long(_: web.BaseRequest) -> web.Response:
        return web.Response(body=b"x" * size)

    async with Server(long, tls=tls, send_seconds=1.0) as server:
        peer = await server.connect()
        await peer.send(GET)
        read, began = 0, time.monotonic()
        async with asyncio.timeout(PATIENCE):
            while read < size:
                piece = await peer.reader.read(1 << 18)
                assert piece, server.listener.capacity.cuts
                read += len(piece)
                await asyncio.sleep(0.02)
        assert time.monotonic() - began > 1.0, "the whole takes longer than a part of it may"
        assert server.listener.capacity.cuts == {}


async def test_a_reader_of_a_long_answer_who_reads_next_to_nothing_is_cut() -> None:
    async def long(_: web.BaseRequest) -> web.Response:
        return web.Response(body=b"x" * (24 << 20))

    async with Server(long, tls=False, send_seconds=0.5) as server:
        peer = await server.connect()
        await peer.send(GET)
        await peer.reader.read(100)
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined] # it reads, too
        await server.until(lambda: server.listener.capacity.cuts["late"] == 1)


async def test_time_in_which_the_server_itself_stood_still_counts_against_nobody(tls: bool) -> None:
    async with Server(read, tls=tls, header_seconds=1.0, body_seconds=1.0) as server:
        peer = await server.connect()
        await peer.send(post(3))
        await asyncio.sleep(0.1)
        time.sleep(1.5)  # noqa: ASYNC251 the loop stands still
        await asyncio.sleep(0.3)
        assert await peer.ask(b"abc") == b"HTTP/1.1 200 OK"
        assert server.listener.capacity.cuts == {}


async def test_a_connection_in_use_meets_no_deadline(tls: bool) -> None:
    async with Server(read, tls=tls, header_seconds=0.2, body_seconds=0.2, send_seconds=0.2) as server:
        peer = await server.connect()
        for _ in range(5):
            await asyncio.sleep(0.1)
            assert await peer.ask(post(3) + b"abc") == b"HTTP/1.1 200 OK"
        assert server.listener.capacity.cuts == {}


# -- places ---------------------------------------------------------------------------------------------------------


async def test_silent_connections_make_room_for_who_asks(tls: bool) -> None:
    async with Server(ok, tls=tls, connections=8) as server:
        kept = await server.connect()
        assert await kept.ask() == b"HTTP/1.1 200 OK"
        silent = [await server.connect(bare=number % 2 == 0) for number in range(20)]
        for _ in range(5):
            fresh = await server.connect()
            assert await fresh.ask() == b"HTTP/1.1 200 OK"
            assert await kept.ask() == b"HTTP/1.1 200 OK"
        assert len(server.listener.capacity) <= 8
        await silent[0].until_cut()


async def test_what_is_being_answered_is_never_cut_and_then_others_are_refused(tls: bool) -> None:
    go = asyncio.Event()

    async def slow(_: web.BaseRequest) -> web.Response:
        await go.wait()
        return web.Response(text="ok")

    async with Server(slow, tls=tls, connections=2) as server:
        peers = [await server.connect() for _ in range(2)]
        for peer in peers:
            await peer.send(GET)
        await server.until(lambda: len(server.listener.capacity._answering) == 2)
        with contextlib.suppress(ConnectionError):
            refused = await server.connect()
            await refused.until_cut()
        go.set()
        assert [await peer.line() for peer in peers] == [b"HTTP/1.1 200 OK"] * 2
        assert server.listener.capacity.cuts["refused"] == 1


async def test_a_process_without_files_gives_up_idle_connections(tls: bool) -> None:
    async with Server(ok, tls=tls) as server:
        silent = [await server.connect() for _ in range(5)]
        await server.until(lambda: len(server.listener.capacity) == 5)
        waiting = [socket.socket() for _ in range(2)]
        with no_more_files():
            loop = asyncio.get_running_loop()
            for each in waiting:
                each.setblocking(False)
                await loop.sock_connect(each, ("127.0.0.1", server.listener.port))
            await server.until(lambda: server.listener.capacity.cuts["room"] >= 2)
            await silent[0].until_cut()
        for each in waiting:
            each.close()


@contextlib.contextmanager
def no_more_files() -> Iterator[None]:
    """Take all files that the process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(used) + 1, hard))
    taken = []
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(used[0]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for file in taken:
            os.close(file)


# -- bytes ----------------------------------------------------------------------------------------------------------


async def test_a_length_over_the_limit_is_refused_before_the_body(tls: bool) -> None:
    seen = []

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append(request)
        return web.Response()

    async with Server(handler, tls=tls, body_limit=1000) as server:
        peer = await server.connect()
        await peer.send(post(10**15))
        assert await peer.line() == b"HTTP/1.1 413 Request Entity Too Large"
        await peer.until_cut()
    assert seen == []


async def test_chunks_over_the_limit_are_not_read_to_their_end(tls: bool) -> None:
    async with Server(read, tls=tls) as server:
        peer = await server.connect()
        await peer.send(post(None) + (b"10000\r\n" + b"x" * 0x10000 + b"\r\n") * 17)
        assert await peer.line() == b"HTTP/1.1 413 Request Entity Too Large"


async def test_the_slowest_body_goes_when_bodies_hold_too_much(tls: bool) -> None:
    async with Server(read, tls=tls, bodies=1 << 20) as server:
        stalled = [await server.connect() for _ in range(6)]
        for peer in stalled:
            await peer.send(post(1 << 20) + b" " * (300 << 10))
        await server.until(lambda: server.listener.capacity.cuts["memory"] >= 2)
        assert server.listener.capacity.spent <= 1 << 20
        honest = await server.connect()
        assert await honest.ask(post(900 << 10) + b" " * (900 << 10)) == b"HTTP/1.1 200 OK"
        assert await honest.ask(post(900 << 10) + b" " * (900 << 10)) == b"HTTP/1.1 200 OK"
        await stalled[0].until_cut()


async def test_half_sent_bodies_are_freed_at_once_and_not_by_the_garbage_collector(tls: bool) -> None:
    def alive() -> list[object]:
        return [each for each in gc.get_objects() if type(each) is inbound.Inbound]

    async with Server(read, tls=tls, body_seconds=0.2) as server:
        warm = await server.connect()
        await warm.ask(post(3) + b"abc")
        gc.collect()
        gc.disable()
        try:
            peer = await server.connect()
            await peer.send(post(1 << 20) + b"\x07" * (500 << 10))
            await peer.until_cut()
            await server.until(lambda: len(alive()) == 1)
        finally:
            gc.enable()


async def test_a_compressed_bomb_stays_small(tls: bool) -> None:
    async with Server(read, tls=tls) as server:
        peer = await server.connect()
        answered = await peer.ask(post(3, "Content-Encoding: gzip") + b"abc")
        assert answered == b"HTTP/1.1 200 OK"  # three bytes, as they came


# -- nonsense -------------------------------------------------------------------------------------------------------


async def test_what_is_no_http_gets_400_and_no_line_of_log(tls: bool, caplog: pytest.LogCaptureFixture) -> None:
    async with Server(ok, tls=tls) as server:
        peer = await server.connect()
        with caplog.at_level(logging.INFO):
            assert await peer.ask(b"\x00\x01 nonsense\r\n\r\n") == b"HTTP/1.0 400 Bad Request"
            await peer.until_cut()
    assert caplog.records == []


async def test_who_leaves_in_a_body_is_no_line_of_log(tls: bool, caplog: pytest.LogCaptureFixture) -> None:
    async with Server(read, tls=tls) as server:
        peer = await server.connect()
        with caplog.at_level(logging.INFO):
            await peer.send(post(1000) + b"x")
            await server.until(lambda: server.listener.capacity.all()[0].deadline < float("inf"))
            peer.writer.transport.abort()
            await server.until(lambda: not len(server.listener.capacity))
            await asyncio.sleep(0.01)
    assert caplog.records == []


async def test_who_drains_answers_each_connection_once_more_and_new_ones_too(tls: bool) -> None:
    async with Server(ok, tls=tls) as server:
        used = await server.connect()
        assert await used.ask() == b"HTTP/1.1 200 OK"
        server.listener.drain()
        for peer in (used, await server.connect()):
            await peer.send(GET)
            async with asyncio.timeout(PATIENCE):
                head = await peer.reader.readuntil(b"\r\n\r\n")
            assert b"connection: close" in head.lower()
            await peer.until_cut()


async def test_a_request_on_the_heels_of_an_answer_is_not_lost(tls: bool) -> None:
    """A peer sees the end of an answer before the handler that sent it has returned."""
    go = asyncio.Event()

    async def stream(request: web.BaseRequest) -> web.StreamResponse:
        body = await body_of(request, 1 << 20)
        response = web.StreamResponse(headers={"Content-Length": "2"})
        await response.prepare(request)
        await response.write(b"ok")
        await response.write_eof()
        if not body:
            await go.wait()
        return response

    async with Server(stream, tls=tls) as server:
        peer = await server.connect()
        assert await peer.ask() == b"HTTP/1.1 200 OK"
        sending = asyncio.create_task(peer.send(post(900_000) + b"x" * 900_000))
        await server.until(lambda: server.listener.capacity.all()[0]._is_early)
        go.set()
        await asyncio.wait_for(sending, PATIENCE)
        assert await peer.line() == b"HTTP/1.1 200 OK"
        assert await peer.ask(post(1) + b"x") == b"HTTP/1.1 200 OK"
        assert server.listener.capacity.cuts == {}


async def test_requests_that_wait_for_the_answer_to_another_are_read_no_further(
    tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, seen, taken = asyncio.Event(), 0, 0
    receive = inbound.Inbound.data_received

    def counted(connection: inbound.Inbound, data: bytes) -> None:
        nonlocal taken
        taken += len(data)
        receive(connection, data)

    async def slow(_: web.BaseRequest) -> web.Response:
        nonlocal seen
        seen += 1
        await go.wait()
        return web.Response(text="ok")

    monkeypatch.setattr(inbound.Inbound, "data_received", counted)
    async with Server(slow, tls=tls) as server:
        peer = await server.connect()
        await peer.send(GET)
        await server.until(lambda: seen == 1)
        flood = asyncio.create_task(peer.send(GET * 200_000))
        await server.until(lambda: server.listener.capacity.all()[0]._is_early)
        await asyncio.wait((flood,), timeout=0.3)
        assert (seen, taken < 1 << 20) == (1, True), "5 megabytes wait in the network"
        flood.cancel()
        go.set()
        assert await peer.line() == b"HTTP/1.1 200 OK"


async def test_a_user_of_many_groups_is_heard(tls: bool) -> None:
    async with Server(ok, tls=tls) as server:
        peer = await server.connect()
        groups = b"".join(b"X-Remote-Group: team-%d\r\n" % number for number in range(500))
        assert await peer.ask(GET[:-2] + groups + b"\r\n") == b"HTTP/1.1 200 OK"


async def test_cuts_are_told_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    async with Server(ok, tls=False, header_seconds=0.1) as server:
        peers = [await server.connect() for _ in range(3)]
        for peer in peers:
            await peer.send(b"GET")
        for peer in peers:
            await peer.until_cut()
        await server.until(lambda: caplog.records)
    (record,) = caplog.records  # of three, which may have been late at different looks
    assert record.message == "connections were cut"
    assert 1 <= record.__dict__["cut_late"] <= 3


# -- addresses ------------------------------------------------------------------------------------------------------


@pytest.fixture
async def everywhere() -> AsyncIterator[Listener]:
    async with Listener(ok, ListenerSettings(0)) as started:
        yield started


async def can_connect(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


def has_ipv6_loopback() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


async def test_without_a_host_all_addresses_are_served(everywhere: Listener) -> None:
    assert await can_connect("127.0.0.1", everywhere.port)
    assert await can_connect("::1", everywhere.port) == has_ipv6_loopback()


async def test_a_machine_without_ipv6_serves_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    listen = listener._listen
    fault = OSError(errno.EADDRNOTAVAIL, "no such address")

    def without_ipv6(family: int, host: str, port: int, *, reuse_port: bool) -> socket.socket:
        if family == socket.AF_INET6:
            raise fault
        return listen(family, host, port, reuse_port=reuse_port)

    monkeypatch.setattr(listener, "_listen", without_ipv6)
    async with Listener(ok, ListenerSettings(0)) as started:
        assert await can_connect("127.0.0.1", started.port)
    fault.errno = errno.EACCES
    with pytest.raises(OSError, match="no such address"):
        await Listener(ok, ListenerSettings(0)).start()


async def test_a_name_is_looked_up() -> None:
    async with Listener(ok, ListenerSettings(0, "localhost")) as started:
        assert await can_connect("127.0.0.1", started.port)


async def test_a_listener_knows_whether_it_serves() -> None:
    server = Listener(ok, ListenerSettings(0, "127.0.0.1"))
    states = [server.serving]
    with pytest.raises(RuntimeError, match="before it was started"):
        _ = server.port
    async with server:
        states.append(server.serving)
        with pytest.raises(OSError, match=r"(?i)address already in use"):
            await Listener(ok, ListenerSettings(server.port, "127.0.0.1")).start()
    states.append(server.serving)
    assert states == [False, True, False]
    await server.stop()


async def test_two_servers_share_a_port_when_asked() -> None:
    async with (
        Listener(ok, ListenerSettings(0, "127.0.0.1", reuse_port=True)) as first,
        Listener(ok, ListenerSettings(first.port, "127.0.0.1", reuse_port=True)) as second,
    ):
        assert second.port == first.port


async def test_a_stop_waits_for_requests_and_not_for_handshakes() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def slow(_: web.BaseRequest) -> web.Response:
        begun.set()
        await go.wait()
        return web.Response(text="ok")

    async with Server(slow, tls=True, stop_seconds=PATIENCE, handshake_seconds=PATIENCE) as server:
        await server.connect(bare=True)
        peer = await server.connect()
        await peer.send(GET)
        await asyncio.wait_for(begun.wait(), PATIENCE)
        stopping = asyncio.create_task(server.listener.stop())
        await asyncio.sleep(0.01)
        assert not stopping.done()
        go.set()
        assert await peer.line() == b"HTTP/1.1 200 OK"
        await asyncio.wait_for(stopping, PATIENCE)
