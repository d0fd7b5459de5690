"""`kube.wire`: answers are read by the letter, and a line is used again only when nothing is left on it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainplane.kube import wire
from trainplane.kube.clock import SystemClock
from trainplane.kube.config import Config
from trainplane.kube.connection import Connection, ConnectionSettings, Request
from trainplane.kube.credentials import Credential
from trainplane.kube.errors import ConfigError
from trainplane.kube.wire import HEAD_BYTES, Answer, NotConnectedError, Reading, Wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

LENGTH = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nWarning: one\r\nwarning: two\r\n\r\n"
    b"5\r\nhello\r\n6;why=not\r\n world\r\n0\r\nTrailer: is dropped\r\n\r\n"
)
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\nX: y\r\n\r\n" + LENGTH
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"


def read(text: bytes, *cuts: int) -> tuple[Answer | None, Reading]:
    """Feed a text in pieces; return what came of it."""
    reading, answer = Reading(), None
    edges = [0, *sorted(cuts), len(text)]
    for begin, end in itertools.pairwise(edges):
        answer = reading.feed(text[begin:end])
    return answer, reading


@pytest.mark.parametrize(
    ("text", "status", "body"),
    [(LENGTH, 201, b"{}"), (CHUNKED, 200, b"hello world"), (INTERIM, 201, b"{}"), (EMPTY, 204, b"")],
)
@given(data=st.data())
def test_an_answer_is_the_same_however_its_bytes_are_cut(text: bytes, status: int, body: bytes, data: Any) -> None:
    cuts = data.draw(st.lists(st.integers(1, len(text) - 1), max_size=8))
    answer, reading = read(text, *cuts)
    assert answer is not None
    assert (answer.status, answer.body, reading.leftover, reading.is_last) == (status, body, 0, False)


def test_headers_are_found_in_any_case_and_all_of_a_name() -> None:
    answer, _ = read(CHUNKED)
    assert answer is not None
    assert answer.headers.getall("WARNING") == ["one", "two"]


@pytest.mark.parametrize(
    "text",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nX: a\r\n folded\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\nY: b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * HEAD_BYTES,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * HEAD_BYTES,
    ],
)
def test_what_is_no_answer_is_never_guessed_at(text: bytes) -> None:
    with pytest.raises(ConnectionError):
        read(text)


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=4))
def test_no_bytes_raise_anything_but_a_connection_error(junk: bytes, cuts: list[int]) -> None:
    with contextlib.suppress(ConnectionError):
        read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + junk, *(cut for cut in cuts if cut < len(junk)))


@pytest.mark.parametrize(
    "text",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n4\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n123456789",
    ],
)
def test_an_answer_that_would_fill_our_memory_is_cut_off_before_it_does(
    text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "BODY_BYTES", 8)
    with pytest.raises(ConnectionError, match="more than"):
        read(text)


def test_an_answer_without_a_length_ends_with_its_connection_and_one_with_a_length_does_not() -> None:
    _, open_ended = read(b"HTTP/1.1 200 OK\r\n\r\nhalf")
    ended = open_ended.end()
    assert ended is not None
    assert (ended.body, open_ended.is_last) == (b"half", True)
    _, cut = read(LENGTH[:-1])
    assert cut.end() is None


class Server:
    """A server of plain TCP that says what a test tells it to, and notes what it hears."""

    def __init__(self) -> None:
        self.connections = 0
        self.heard: list[bytes] = []
        self.says: Callable[[asyncio.StreamWriter], Awaitable[None]] = self.answer
        self.port = 0

    @staticmethod
    async def answer(writer: asyncio.StreamWriter) -> None:
        """Answer well."""
        writer.write(LENGTH)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take requests without a body until there are no more."""
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                self.heard.append(await reader.readuntil(b"\r\n\r\n"))
                await self.says(writer)
                await writer.drain()
        writer.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = listening.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        listening.close()


def wire_to(port: int, *, idle_seconds: float = 30.0) -> Wire:
    return Wire(
        "127.0.0.1",
        port,
        make_socket=lambda address: socket.socket(*address[:3]),
        connect_seconds=10.0,
        idle_seconds=idle_seconds,
    )


async def ask(wire: Wire, seconds: float = 30.0) -> Answer:
    return await wire.exchange(b"GET / HTTP/1.1\r\n\r\n", None, None, seconds)


async def test_a_line_is_used_again_after_a_whole_answer(server: Server) -> None:
    wire = wire_to(server.port)
    for _ in range(3):
        assert (await ask(wire)).body == b"{}"
    assert server.connections == 1
    wire.close()


async def test_wire_event_loop_refuses_socket_not_connected_and_next_request_works(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise RuntimeError("File descriptor 25 is used by transport <TCPTransport closed=False reading=True 0x1>")

    wire = wire_to(server.port)
    with monkeypatch.context() as patched:
        patched.setattr(asyncio.get_running_loop(), "sock_connect", refuse)
        with pytest.raises(NotConnectedError, match="refused the socket"):
            await ask(wire)
    assert (await ask(wire)).body == b"{}"
    wire.close()


async def test_wire_other_runtime_error_while_connecting_is_raised(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("another error")

    wire = wire_to(server.port)
    monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", fail)
    with pytest.raises(RuntimeError, match="another error"):
        await ask(wire)
    wire.close()


async def test_requests_at_the_same_time_have_lines_of_their_own(server: Server) -> None:
    wire = wire_to(server.port)
    answers = await asyncio.gather(*(ask(wire) for _ in range(8)))
    assert [answer.status for answer in answers] == [201] * 8
    assert server.connections == 8
    wire.close()


@pytest.mark.parametrize(
    "text",
    [
        LENGTH.replace(b"\r\n\r\n", b"\r\nConnection: keep-alive, Close\r\n\r\n"),
        LENGTH.replace(b"HTTP/1.1", b"HTTP/1.0"),
        LENGTH + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged",
    ],
)
async def test_a_line_that_the_server_ends_or_says_too_much_on_is_not_used_again(server: Server, text: bytes) -> None:
    async def says(writer: asyncio.StreamWriter) -> None:
        writer.write(text)

    server.says = says
    wire = wire_to(server.port)
    assert (await ask(wire)).body == b"{}"
    assert (await ask(wire)).body == b"{}"
    assert server.connections == 2
    wire.close()


async def test_what_comes_unasked_is_no_answer_to_the_next_request(server: Server) -> None:
    writers: list[asyncio.StreamWriter] = []

    async def says(writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        writer.write(LENGTH)

    server.says = says
    wire = wire_to(server.port)
    await ask(wire)
    writers[0].write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
    with contextlib.suppress(ConnectionError):
        await writers[0].wait_closed()
    assert (await ask(wire)).body == b"{}"
    wire.close()


async def test_an_answer_that_comes_too_late_is_nobodys(server: Server) -> None:
    held = asyncio.Event()

    async def says(writer: asyncio.StreamWriter) -> None:
        await held.wait()
        writer.write(LENGTH.replace(b"{}", b"[]"))

    server.says = says
    wire = wire_to(server.port)
    with pytest.raises(TimeoutError):
        await ask(wire, seconds=0.05)
    server.says = server.answer
    held.set()
    assert (await ask(wire)).body == b"{}"
    wire.close()


async def test_a_connection_that_is_cut_amid_an_answer_is_an_error(server: Server) -> None:
    async def says(writer: asyncio.StreamWriter) -> None:
        writer.write(LENGTH[:-1])
        writer.close()

    server.says = says
    wire = wire_to(server.port)
    with pytest.raises(ConnectionError):
        await ask(wire)
    wire.close()


async def test_a_line_that_nobody_used_for_long_is_closed(server: Server) -> None:
    wire = wire_to(server.port, idle_seconds=0.0)
    await ask(wire)
    await ask(wire)
    assert server.connections == 2
    wire.close()


async def test_who_is_not_there_was_sent_nothing() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(NotConnectedError) as refused:
            await ask(wire_to(free.getsockname()[1]))
    assert not refused.value.timed_out


async def test_a_closed_wire_answers_who_still_waits(server: Server) -> None:
    asked = asyncio.Event()

    async def says(writer: asyncio.StreamWriter) -> None:
        del writer
        asked.set()

    server.says = says
    wire = wire_to(server.port)
    waiting = asyncio.create_task(ask(wire))
    await asked.wait()
    wire.close()
    with pytest.raises(ConnectionError):
        await waiting


async def test_a_connection_that_is_made_while_the_wire_closes_is_not_used(server: Server) -> None:
    wire = wire_to(server.port)
    waiting = asyncio.create_task(ask(wire))
    await asyncio.sleep(0)
    wire.close()
    with pytest.raises(NotConnectedError):
        await waiting
    assert not server.heard


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/a b", ()),
        ("/a\r\nX: y", ()),
        ("/é", ()),
        ("/a", (("X", "one\r\nY: two"),)),
        ("/a", (("X", "nul\0"),)),
    ],
)
async def test_no_request_says_more_than_it_was_told(
    server: Server, path: str, headers: tuple[tuple[str, str], ...]
) -> None:
    config = Config(f"http://127.0.0.1:{server.port}", headers=headers)
    connection = Connection(config, ConnectionSettings(), SystemClock(), connections=1)
    with pytest.raises(ConfigError) as refused:
        await connection.exchange(Request("POST", path, seconds=30.0), Credential())
    assert "two" not in str(refused.value)
    assert not server.heard
    await connection.close()


async def test_a_request_says_where_who_and_how_long(server: Server) -> None:
    config = Config(f"http://127.0.0.1:{server.port}/clusters/a")
    connection = Connection(config, ConnectionSettings(), SystemClock(), connections=1)
    credential = Credential(authorization="Bearer x")
    answer = await connection.exchange(Request("POST", "/api?dryRun=All", seconds=30.0), credential)
    assert answer.status == 201
    first, *lines = server.heard[0].decode().split("\r\n")
    assert first == "POST /clusters/a/api?dryRun=All HTTP/1.1"
    said = {"Authorization: Bearer x", "Content-Length: 0", "Accept-Encoding: identity", "Accept: application/json"}
    assert said | {f"Host: 127.0.0.1:{server.port}"} <= set(lines)
    await connection.close()
