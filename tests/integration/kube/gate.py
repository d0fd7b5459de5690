"""A TCP proxy on the way to the API server that can be shut while others still reach it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from typing import TYPE_CHECKING, Literal

from tests.integration.kube.support import until

if TYPE_CHECKING:
    from typing import Self

    from trainplane.kube.config import Config


class Gate:
    """Forwards a port of its own to another; `cut` and `swallow` are two ways for a network to fail.

    Cut, connections break and new ones break at once. Swallowing, they stay open and nothing passes: the silence that
    only a watchdog notices. What was open then stays dead after `mend`. `lag` is how late everything arrives, in
    seconds.
    """

    def __init__(self, port: int, *, lag: float = 0.0) -> None:
        self._target = port
        self._lag = lag
        self._mode: Literal["open", "cut", "swallow"] = "open"
        self._writers: set[asyncio.StreamWriter] = set()
        self._dead: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await until(lambda: not self._writers, "the end of what passes the gate")

    def cut(self) -> None:
        self._mode = "cut"
        for writer in self._writers:
            writer.transport.abort()

    def swallow(self) -> None:
        self._mode = "swallow"
        self._dead |= self._writers

    def mend(self) -> None:
        self._mode = "open"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._mode == "cut":
            writer.transport.abort()
            return
        there, away = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, away}
        if self._mode == "swallow":
            self._dead |= {writer, away}
        await asyncio.gather(self._pump(reader, away), self._pump(there, writer))
        for end in (writer, away):
            self._writers.discard(end)
            self._dead.discard(end)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                await asyncio.sleep(self._lag)
                if writer not in self._dead:
                    writer.write(data)
                    await writer.drain()
        writer.transport.abort()


def through(gate: Gate, config: Config) -> Config:
    """Return a configuration that reaches its server through a gate."""
    return dataclasses.replace(config, server=f"https://127.0.0.1:{gate.port}")
