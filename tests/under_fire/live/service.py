"""A Service of two pods, as kube-proxy and the kubelet make it: connections go to whoever was ready when last asked.

python service.py PORT BACKEND:HEALTH [BACKEND:HEALTH ...]
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys

PERIOD = 1.0
"""Seconds between two looks at readiness: longer than a cluster takes to take an endpoint out, so that who ends has
to answer for a while after it said that it does."""


async def is_ready(port: int) -> bool:
    try:
        async with asyncio.timeout(PERIOD):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /readyz HTTP/1.0\r\n\r\n")
            first = await reader.readline()
            writer.close()
    except (OSError, TimeoutError):
        return False
    return b" 200 " in first


async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()


async def serve(port: int, pods: dict[int, int]) -> None:
    ready: list[int] = []
    turn = itertools.count()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not ready:
            writer.close()
            return
        try:
            there, back = await asyncio.open_connection("127.0.0.1", ready[next(turn) % len(ready)])
        except OSError:
            writer.close()
            return
        await asyncio.gather(pipe(reader, back), pipe(there, writer))

    async with await asyncio.start_server(connect, "127.0.0.1", port):
        while True:
            ready[:] = [pod for pod, health in pods.items() if await is_ready(health)]
            await asyncio.sleep(PERIOD)


if __name__ == "__main__":
    pairs = (pair.partition(":") for pair in sys.argv[2:])
    asyncio.run(serve(int(sys.argv[1]), {int(pod): int(health) for pod, _, health in pairs}))
