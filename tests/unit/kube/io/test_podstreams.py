from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.unit.kube.io.support import until
from trainplane.kube import errors
from trainplane.kube.client import Client
from trainplane.kube.clock import SystemClock
from trainplane.kube.credentials import TokenFile
from trainplane.kube.podstreams import V4, V5, ExecResult
from trainplane.kube.testing.faults import Hang, Refuse
from trainplane.kube.testing.podserver import Ran
from trainplane.kube.transport import Transport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from trainplane.kube.testing.server import FakeServer


@pytest.fixture
async def client(server: FakeServer) -> AsyncIterator[Client]:
    async with server.client() as open_:
        yield open_


@pytest.mark.parametrize("protocols", [(V5, V4), (V5,), (V4,)])
async def test_output_and_code(server: FakeServer, client: Client, protocols: tuple[str, ...]) -> None:
    server.pods.protocols = protocols
    server.pods.run = lambda *_: Ran(b"out" * 1000, b"err" * 1000, 3)
    assert await client.exec("ns", "a", ["x"]) == ExecResult(b"out" * 1000, b"err" * 1000, 3)
    server.pods.run = lambda *_: Ran()
    assert await client.exec("ns", "a", ["x"]) == ExecResult(b"", b"", 0)


async def test_stdin_arrives_whole_and_ends(server: FakeServer, client: Client) -> None:
    server.pods.run = lambda _, stdin: Ran(stdin[::-1])
    sent = bytes(range(256)) * 10_000
    assert (await client.exec("ns", "a", ["rev"], stdin=sent)).stdout == sent[::-1]
    assert (await client.exec("ns", "a", ["rev"], stdin=b"")).stdout == b""


async def test_stdin_over_a_protocol_that_cannot_end_it_is_refused(server: FakeServer, client: Client) -> None:
    server.pods.protocols = (V4,)
    with pytest.raises(errors.StreamError, match=r"the server speaks v4\.channel\.k8s\.io, which cannot end stdin"):
        await client.exec("ns", "a", ["cat"], stdin=b"x")


async def test_what_the_server_is_asked(server: FakeServer, client: Client) -> None:
    seen: list[list[str]] = []

    def run(command: list[str], stdin: bytes) -> Ran:
        seen.append(command)
        return Ran()

    server.pods.run = run
    await client.exec("ns", "a", ["sh", "-c", "echo a&b=c"], container="main")
    assert seen == [["sh", "-c", "echo a&b=c"]]
    (asked,) = server.requests
    assert asked.path == "/api/v1/namespaces/ns/pods/a/exec"
    assert asked.query | {"command": "sh"} == {"stdout": "true", "stderr": "true", "command": "sh", "container": "main"}
    assert asked.headers["Sec-WebSocket-Protocol"] == f"{V5},{V4}"


async def test_a_connection_that_ends_before_the_command_is_told(server: FakeServer, client: Client) -> None:
    server.pods.cut_exec = True
    with pytest.raises(errors.StreamError, match=r"exec in ns/a: the connection ended .* before the command did"):
        await client.exec("ns", "a", ["x"])


async def test_a_command_that_does_not_end(server: FakeServer, client: Client) -> None:
    server.add_fault(Hang())
    with pytest.raises(errors.StreamError, match=r"did not end within 0\.05 s"):
        await client.exec("ns", "a", ["sleep"], timeout_seconds=0.05)


@pytest.mark.parametrize(("code", "expected"), [(404, errors.NotFoundError), (403, errors.ForbiddenError)])
async def test_a_refused_upgrade_says_why(
    server: FakeServer, client: Client, code: int, expected: type[errors.ApiError]
) -> None:
    server.add_fault(Refuse(code=code, times=2))
    with pytest.raises(expected, match="refused on purpose"):
        await client.exec("ns", "a", ["x"])


async def test_a_refused_upgrade_that_a_plain_request_does_not_explain(server: FakeServer, client: Client) -> None:
    server.add_fault(Refuse(code=403))
    with pytest.raises(errors.ForbiddenError, match="refused the WebSocket and gave no reason"):
        await client.exec("ns", "a", ["x"])


async def test_an_expired_token_is_renewed_for_an_exec_too(server: FakeServer, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    credentials = TokenFile(file, SystemClock())
    server.tokens = {"new"}
    async with Client(Transport(server.config(credentials=credentials))) as client:
        with pytest.raises(errors.UnauthorizedError):
            await client.exec("ns", "a", ["x"])
        file.write_text("new")
        assert (await client.exec("ns", "a", ["x"])).code == 0
        server.tokens = {"newer"}
        file.write_text("newest")
        with pytest.raises(errors.UnauthorizedError, match="Unauthorized"):
            await client.exec("ns", "a", ["x"])


async def test_a_cancelled_exec_leaves_no_stream_open(server: FakeServer, client: Client) -> None:
    server.add_fault(Hang())
    task = asyncio.create_task(client.exec("ns", "a", ["x"]))
    await until(lambda: bool(server.requests))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert client.transport._streams == 0


async def test_a_failure_that_is_no_exit_code(
    server: FakeServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = {
        "kind": "Status",
        "status": "Failure",
        "reason": "InternalError",
        "message": "no such file: x",
        "code": 500,
    }
    monkeypatch.setattr("trainplane.kube.testing.podserver._status", lambda _: failure)
    with pytest.raises(errors.InternalServerError, match="no such file: x"):
        await client.exec("ns", "a", ["x"])
