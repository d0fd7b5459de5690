"""A thousand hostile connections from one cheap process: `python hostile.py --port 9443 --connections 1000`.

Each of them plays one part again and again, and comes back a moment after it was cut off. It prints `ready` when every
one has connected once, and at its end a line of JSON: connections made and cut, by part. It speaks only to loopback, so
many connections for so long, and ends by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import random
import socket
import ssl
import struct
import sys
from collections import Counter
from typing import TYPE_CHECKING

import uvloop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Part = Callable[["Hostile", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

PATH = "/validate-trainer-kubeflow-org-v1alpha1-trainjob"
BODY = 6 << 20
BACK_SECONDS = 2.0
"""How long one that was cut off waits until it is back: they are to cost the server more than this machine."""


def head(length: int | str, *lines: str) -> bytes:
    size = f"Content-Length: {length}" if isinstance(length, int) else length
    return "\r\n".join((f"POST {PATH} HTTP/1.1", "Host: x", size, *lines, "", "")).encode()


async def silent(_: Hostile, reader: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
    """Connect and say nothing: without TLS this is a handshake that never begins."""
    await reader.read(1)


async def half_hello(_: Hostile, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Begin a handshake and stop in it."""
    writer.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    await reader.read(1)


async def garbage(_: Hostile, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(os.urandom(4096))
    await reader.read()


async def half_headers(_: Hostile, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head(10)[:-10])
    await reader.read(1)


async def drip_headers(hostile: Hostile, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head(10)[:-2] + b"X-Slow: ")
    while not reader.at_eof():
        writer.write(b"a")
        await hostile.pause()


async def half_body(_: Hostile, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a good part of a large body and keep the rest."""
    writer.write(head(BODY))
    writer.write(b" " * (1 << 20))
    await reader.read(1)


async def drip_body(hostile: Hostile, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head(BODY))
    while not reader.at_eof():
        writer.write(b" ")
        await hostile.pause()


async def huge_length(_: Hostile, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head(10**15) + b"x" * 1000)
    await reader.read()


async def endless_chunks(hostile: Hostile, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Transfer-Encoding: chunked"))
    while not reader.at_eof():
        writer.write(b"4000\r\n" + b" " * 0x4000 + b"\r\n")
        await writer.drain()
        await hostile.pause()


async def pipelined(_: Hostile, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write((head(4) + b"junk") * 200)
    await reader.read()


async def asked_once(_: Hostile, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Get one answer, as an honest caller does, and lie idle."""
    writer.write(b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n")
    while await reader.read(4096):
        pass


async def reset(hostile: Hostile, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send half a request and break off without a goodbye."""
    writer.write(head(BODY) + b" " * 10_000)
    await writer.drain()
    await hostile.pause()
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


BARE: tuple[Part, ...] = (silent, half_hello, garbage)
"""Parts that never speak TLS."""
SPEAKING: tuple[Part, ...] = (
    *(silent, half_headers, drip_headers, half_body, drip_body),
    *(huge_length, endless_chunks, pipelined, asked_once, reset),
)


class Hostile:
    def __init__(self, host: str, port: int, *, tls: bool, seed: int) -> None:
        self.host, self.port = host, port
        self.random = random.Random(seed)  # noqa: S311 no secrets
        self.made: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.context = ssl.create_default_context() if tls else None
        if self.context is not None:
            self.context.check_hostname = False
            self.context.verify_mode = ssl.CERT_NONE

    async def pause(self) -> None:
        await asyncio.sleep(self.random.uniform(0.5, 1.5) * BACK_SECONDS)

    async def play(self, part: Part, context: ssl.SSLContext | None, begun: asyncio.Event) -> None:
        name = part.__name__ if context or self.context is None else f"bare {part.__name__}"
        while True:
            writer = None
            try:
                reader, writer = await asyncio.open_connection(self.host, self.port, ssl=context)
                self.made[name] += 1
                begun.set()
                await part(self, reader, writer)
            except (OSError, EOFError):
                pass
            finally:
                if writer is not None:
                    writer.transport.abort()
            begun.set()
            self.ended[name] += 1
            await self.pause()

    async def run(self, connections: int, seconds: float, only: list[str]) -> None:
        cast: list[tuple[Part, ssl.SSLContext | None]] = [(part, self.context) for part in SPEAKING]
        if self.context is not None:
            cast += [(part, None) for part in BARE]
        cast = [each for each in cast if not only or each[0].__name__ in only]
        events, tasks = [], []
        for number, (part, context) in enumerate(itertools.islice(itertools.cycle(cast), connections)):
            begun = asyncio.Event()
            events.append(begun)
            tasks.append(asyncio.create_task(self.play(part, context, begun)))
            if number % 20 == 19:
                await asyncio.sleep(0.02)
        await asyncio.gather(*(event.wait() for event in events))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--plain", action="store_true", help="without TLS")
    parser.add_argument("--only", nargs="*", default=[], help="parts to play; default: all")
    flags = parser.parse_args()
    hostile = Hostile(flags.host, flags.port, tls=not flags.plain, seed=1)
    uvloop.run(hostile.run(flags.connections, flags.seconds, flags.only))
    sys.stdout.write(json.dumps({"made": hostile.made, "ended": hostile.ended}) + "\n")


if __name__ == "__main__":
    main()
