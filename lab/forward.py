"""Carry a loopback port of the machine into a cluster's network: `python -m lab.forward DESCRIPTOR PORT`.

The listening socket was made in the machine's network and is inherited; this process runs in the cluster's, so what it
connects to is there. One kubeconfig therefore works both on the machine and inside the cluster.
Written by hand because no packaged forwarder listens in one network namespace and connects in another.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys

_CHUNK = 1 << 18


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()


async def _serve(listener: socket.socket, port: int) -> None:
    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, here = await asyncio.open_connection("127.0.0.1", port, limit=_CHUNK)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pump(reader, here), _pump(there, writer))

    server = await asyncio.start_server(carry, sock=listener, limit=_CHUNK)
    await server.serve_forever()


def main(arguments: list[str]) -> None:
    """Serve until killed."""
    descriptor, port = (int(argument) for argument in arguments)
    asyncio.run(_serve(socket.socket(fileno=descriptor), port))


if __name__ == "__main__":
    main(sys.argv[1:])
