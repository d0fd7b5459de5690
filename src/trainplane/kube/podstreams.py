"""Commands in containers, over a WebSocket of channels.

The first byte of each message is its channel: 0 stdin, 1 stdout, 2 stderr, 3 the Status at the end. Protocol v5 adds
255, which closes the channel it names; v4 has no way to say that stdin is over.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

import msgspec

from trainplane.kube.codec import error_from_status
from trainplane.kube.errors import StreamError
from trainplane.kube.resource import PODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import aiohttp

    from trainplane.kube.transport import Transport

V5 = "v5.channel.k8s.io"
V4 = "v4.channel.k8s.io"

STDIN, STDOUT, STDERR, STATUS, CLOSE = 0, 1, 2, 3, 255

_CHUNK = 1 << 20


class ExecResult(NamedTuple):
    """What a command printed and its exit code."""

    stdout: bytes
    stderr: bytes
    code: int


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] | None = None


class _Status(msgspec.Struct):
    status: str = ""
    reason: str = ""
    details: _Details | None = None


async def run_command(
    transport: Transport,
    namespace: str,
    pod: str,
    command: Sequence[str],
    *,
    container: str | None,
    stdin: bytes | None,
    timeout_seconds: float | None,
) -> ExecResult:
    """Run a command to its end.

    Raises StreamError if the connection ends before the command's Status or `timeout_seconds` pass (the command may
    have run), or if stdin is given and the server speaks v4 only, where the command would wait for its end forever.
    """
    query = [("stdout", "true"), ("stderr", "true"), *(("command", part) for part in command)]
    if stdin is not None:
        query.append(("stdin", "true"))
    if container is not None:
        query.append(("container", container))
    path = f"{PODS.path(namespace, pod, 'exec')}?{urlencode(query)}"
    where = f"exec in {namespace}/{pod}"
    try:
        async with asyncio.timeout(timeout_seconds), transport.websocket(path, (V5, V4)) as socket:
            if stdin is None:
                return await _receive(socket, where)
            if socket.protocol != V5:
                raise StreamError(f"{where}: the server speaks {socket.protocol or V4}, which cannot end stdin")
            sending = asyncio.create_task(_send_stdin(socket, stdin))
            try:
                return await _receive(socket, where)
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
    except TimeoutError as error:
        raise StreamError(f"{where}: the command did not end within {timeout_seconds} s") from error


async def _send_stdin(socket: aiohttp.ClientWebSocketResponse, stdin: bytes) -> None:
    for start in range(0, len(stdin), _CHUNK):
        await socket.send_bytes(bytes([STDIN]) + stdin[start : start + _CHUNK])
    await socket.send_bytes(bytes([CLOSE, STDIN]))


async def _receive(socket: aiohttp.ClientWebSocketResponse, where: str) -> ExecResult:
    output = {STDOUT: bytearray(), STDERR: bytearray()}
    async for message in socket:
        if not isinstance(message.data, bytes) or not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel == STATUS:
            return ExecResult(bytes(output[STDOUT]), bytes(output[STDERR]), _exit_code(data))
        if channel in output:
            output[channel] += data
    raise StreamError(f"{where}: the connection ended (code {socket.close_code}) before the command did")


def _exit_code(data: bytes) -> int:
    """Return the exit code a Status tells; raises ApiError where it tells of something else than a command's end."""
    status = msgspec.json.decode(data, type=_Status)
    if status.status == "Success":
        return 0
    causes = (status.details.causes if status.details else None) or []
    for cause in causes:
        if status.reason == "NonZeroExitCode" and cause.reason == "ExitCode" and cause.message.isdigit():
            return int(cause.message)
    raise error_from_status(data)
