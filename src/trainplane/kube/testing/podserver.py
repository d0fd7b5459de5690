"""The part of the fake API server that a kubelet answers: logs and exec."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from aiohttp import WSMsgType, web

from trainplane.kube.errors import BadRequestError
from trainplane.kube.notifier import Notifier
from trainplane.kube.testing.podlogs import ContainerLogs

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.kube.resource import Key


class Ran(NamedTuple):
    """What a command in a fake container did."""

    stdout: bytes = b""
    stderr: bytes = b""
    code: int = 0


def _echo(command: list[str], stdin: bytes) -> Ran:
    return Ran(stdout=" ".join(command).encode() + b"\n" + stdin)


@dataclass
class PodServer:
    """Logs by pod, as chunks in the order they are written; a command is a function."""

    logs: dict[Key, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    finished: set[Key] = field(default_factory=set)
    run: Callable[[list[str], bytes], Ran] = _echo
    protocols: tuple[str, ...] = ("v5.channel.k8s.io", "v4.channel.k8s.io")
    cut_exec: bool = False
    """Close the socket of an exec before the command's Status."""
    containers: dict[tuple[Key, str], ContainerLogs] = field(default_factory=lambda: defaultdict(ContainerLogs))
    """Logs by pod and container, with times, for requests that name a container which is here."""

    def __post_init__(self) -> None:
        self._news = Notifier()

    def write_log(self, key: Key, chunk: bytes) -> None:
        """Let a container print."""
        self.logs[key].append(chunk)
        self._news.notify()

    def finish(self, key: Key) -> None:
        """Let a container end, and with it the logs that are followed."""
        self.finished.add(key)
        self._news.notify()

    async def serve(self, request: web.Request, key: Key, subresource: str) -> web.StreamResponse:
        """Answer a request for logs or exec."""
        return await (self._log(request, key) if subresource == "log" else self._exec(request))

    async def _log(self, request: web.Request, key: Key) -> web.StreamResponse:
        container = (key, request.query.get("container", ""))
        if container in self.containers:
            return await self.containers[container].serve(request)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        sent = 0
        while True:
            news = self._news.next
            for chunk in self.logs[key][sent:]:
                await response.write(chunk)
                sent += 1
            if request.query.get("follow") != "true" or key in self.finished:
                break
            await news.wait()
        await response.write_eof()
        return response

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() != "websocket":
            raise BadRequestError("Upgrade request required")
        socket = web.WebSocketResponse(protocols=self.protocols)
        await socket.prepare(request)
        stdin = await _read_stdin(socket) if request.query.get("stdin") == "true" else b""
        ran = self.run(request.query.getall("command"), stdin)
        for channel, data in ((1, ran.stdout), (2, ran.stderr)):
            await socket.send_bytes(bytes([channel]))
            for start in range(0, len(data), 1000):
                await socket.send_bytes(bytes([channel]) + data[start : start + 1000])
        if not self.cut_exec:
            await socket.send_bytes(b"\x03" + msgspec.json.encode(_status(ran.code)))
        await socket.close()
        return socket


async def _read_stdin(socket: web.WebSocketResponse) -> bytes:
    content = bytearray()
    async for message in socket:
        if message.type != WSMsgType.BINARY or message.data[:2] == b"\xff\x00":
            break
        if message.data[0] == 0:
            content += message.data[1:]
    return bytes(content)


def _status(code: int) -> dict[str, object]:
    if code == 0:
        return {"kind": "Status", "metadata": {}, "status": "Success"}
    causes = [{"reason": "ExitCode", "message": str(code)}]
    return {
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: {code}",
        "details": {"causes": causes},
    }
