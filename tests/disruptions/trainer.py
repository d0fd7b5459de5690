"""A training program whose ranks talk to each other, for pods without any library.

Rank 0 listens, the others connect to it, and in each step every rank waits for all: so a rank that is lost ends the
others, as with gloo or NCCL. What a rank does on SIGTERM is chosen by ON_SIGTERM: `exit CODE`, or `save SECONDS`, which
exits with 0. A file /tmp/finish in rank 0 ends the training, /tmp/abort ends a rank as NCCL's watchdog does.
"""

from __future__ import annotations

from typing import Any, Final

from lab.images import reference

Tree = dict[str, Any]

PROGRAM: Final = r"""
import os, pathlib, signal, socket, sys, time

rank = int(os.environ["JOB_COMPLETION_INDEX"])
size, master, port = int(os.environ["RANKS"]), os.environ["RANK_0"], 29876
action, amount = os.environ["ON_SIGTERM"].split()

def stop(*_):
    if action == "save":
        print("saving", flush=True)
        time.sleep(float(amount))
        os._exit(0)
    os._exit(int(amount))

signal.signal(signal.SIGTERM, stop)

def receive(peer):
    data = peer.recv(1)
    if not data:
        raise RuntimeError("[gloo] Connection closed by peer: a rank was lost")
    return data

def join():
    if rank == 0:
        with socket.create_server(("", port), backlog=size) as server:
            return [server.accept()[0] for _ in range(size - 1)]
    while True:
        try:
            return [socket.create_connection((master, port), timeout=60)]
        except OSError:
            time.sleep(0.2)

peers = join()
for step in range(10**6):
    if pathlib.Path("/tmp/abort").exists():
        print("ProcessGroupNCCL.cpp: Watchdog caught collective operation timeout", file=sys.stderr, flush=True)
        os._exit(134)
    if rank == 0:
        last = pathlib.Path("/tmp/finish").exists()
        for peer in peers:
            receive(peer)
        for peer in peers:
            peer.sendall(b"!" if last else b".")
    else:
        peers[0].sendall(b".")
        last = receive(peers[0]) == b"!"
    if step % 3 == 0:
        print(f"step {step}", flush=True)
    if last:
        print(f"finished at step {step}", flush=True)
        break
    time.sleep(0.1)
"""


def train_job(
    name: str,
    namespace: str,
    runtime: str,
    *,
    nodes: int = 2,
    on_sigterm: str = "exit 1",
    cpu: str = "10m",
    **more: Any,
) -> Tree:
    """Return a TrainJob that trains until its file /tmp/finish exists; `more` adds to its spec."""
    variables = {"RANKS": str(nodes), "RANK_0": f"{name}-node-0-0.{name}", "ON_SIGTERM": on_sigterm}
    trainer: Tree = {
        "image": reference("python"),
        "command": ["python3", "-u", "-c", PROGRAM],
        "env": [{"name": key, "value": value} for key, value in variables.items()],
        "numNodes": nodes,
        "resourcesPerNode": {"requests": {"cpu": cpu, "memory": "16Mi"}},
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"runtimeRef": {"name": runtime}, "trainer": trainer, **more},
    }
