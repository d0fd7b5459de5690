"""Cells of user code that several probes run."""

from __future__ import annotations

_HELD = """
def held():
    import os
    import sys
    import time

    print("begun", flush=True)
    while not os.path.exists("/tmp/go"):
        if os.path.exists("/tmp/fail"):
            sys.exit(3)
        time.sleep(0.1)
    print("done", flush=True)


client.train(runtime=runtime, trainer=CustomTrainer(func=held), options=[Name(name=name), OPTIONS])
"""
WAIT = "client.wait_for_job_status(name, status=set(status), timeout=200, polling_interval=1)"


def train_held(options: str = "") -> str:
    """Return a cell that starts a training which goes on, or fails, when its pods are told so."""
    return _HELD.replace("OPTIONS", options)


MPI = """
def reduce():
    import socket

    from mpi4py import MPI

    world = MPI.COMM_WORLD
    hosts = set(world.allgather(socket.gethostname()))
    if world.rank == 0:
        print(f"{world.size} processes on {len(hosts)} hosts")


name = client.train(runtime="mpi", trainer=CustomTrainer(func=reduce, num_nodes=2), options=[Name(name="mpi")])
seen = {}
note = lambda job: seen.update((step.name, step.pod_name) for step in job.steps)
client.wait_for_job_status(name, timeout=200, polling_interval=1, callbacks=[note])
{"seen": seen, "lines": list(client.get_job_logs(name))}
"""
