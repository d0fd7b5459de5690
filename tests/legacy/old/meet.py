"""What the samples train: every process finds the first by what the operator put into its environment, and is counted.

It runs in pods, on nothing but Python.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import time

PATIENCE = 120


def meeting() -> tuple[str, int, int]:
    """Return where the first process listens, and how many there are, in the words of each framework."""
    given = os.environ
    if "TF_CONFIG" in given:
        hosts = json.loads(given["TF_CONFIG"])["cluster"]
        first = hosts.get("chief", hosts["worker"])[0]
        host, _, port = first.rpartition(":")
        return host, int(port), sum(map(len, hosts.values()))
    if "COORDINATOR_ADDRESS" in given:
        return given["COORDINATOR_ADDRESS"], int(given["COORDINATOR_PORT"]), int(given["NUM_PROCESSES"])
    if "PADDLE_MASTER" in given:
        host, _, port = given["PADDLE_MASTER"].rpartition(":")
        return host, int(port), int(given["PADDLE_NNODES"])
    return given["MASTER_ADDR"], int(given["MASTER_PORT"]), int(given["WORLD_SIZE"])


def resolved(host: str) -> str:
    """Return a host's address, once the cluster's names have it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.gethostbyname(host)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)


def count(port: int, size: int) -> None:
    """Await everyone else."""
    with socket.create_server(("", port)) as server:
        server.settimeout(PATIENCE)
        for _ in range(size - 1):
            server.accept()[0].close()


def be_counted(address: str, port: int) -> None:
    """Reach the first process, which may not listen yet."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection((address, port), timeout=5).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)
        else:
            return


def main() -> None:
    """Meet."""
    atexit.register(time.sleep, 1)  # or the container runtime may lose the last words
    host, port, size = meeting()
    address = resolved(host)
    if address == socket.gethostbyname(socket.gethostname()):
        count(port, size)
        print(f"all {size} processes met", flush=True)  # noqa: T201 what a pod says
    else:
        be_counted(address, port)
        print(f"one of {size} processes met the first", flush=True)  # noqa: T201 the same


if __name__ == "__main__":
    main()
