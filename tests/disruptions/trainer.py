"""Training programs whose ranks talk to each other, and TrainJobs that run them.

`PROGRAM` needs no library: rank 0 listens, the others connect to it, and in each step every rank waits for all. So a
rank that is lost ends the others, as with gloo or NCCL. `GLOO` does the same with torch and its gloo backend. In both,
a file /tmp/finish in rank 0 ends the training, and /tmp/abort ends a rank as NCCL's watchdog does.
"""

from __future__ import annotations

from typing import Any, Final

from lab.images import reference

Tree = dict[str, Any]

PROGRAM: Final = r"""
import os, pathlib, signal, socket, sys, time

rank = int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["JOB_COMPLETION_INDEX"])
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
        pathlib.Path("/tmp/abort").unlink()  # a node of MPI starts the next process in the same container
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

GLOO: Final = r"""
import os, pathlib, time, torch, torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
for step in range(10**6):
    if pathlib.Path("/tmp/abort").exists():
        os.abort()
    last = torch.tensor([float(rank == 0 and pathlib.Path("/tmp/finish").exists())])
    dist.all_reduce(last)
    if rank == 0 and step % 3 == 0:
        print(f"step {step}", flush=True)
    if last:
        break
    time.sleep(0.1)
dist.destroy_process_group()
"""

RUN: Final = ("python3", "-u", "-c", PROGRAM)
TORCHRUN: Final = ("sh", "-c", f"cat > /tmp/train.py <<'END'\n{GLOO}\nEND\nexec torchrun /tmp/train.py")
_MPI: Final = "/opt/openmpi4"
_SENT: Final = [word for name in ("RANKS", "RANK_0", "ON_SIGTERM") for word in ("-x", name)]
_RESOLVED: Final = 'until getent hosts "$RANK_0"; do sleep 0.2; done; exec "$@"'
"""A launcher that is a node itself may start before its own name resolves; mpirun then takes it for another host."""
MPIRUN: Final = ("sh", "-c", _RESOLVED, "sh", f"{_MPI}/bin/mpirun", "-n", "2", *_SENT, *RUN)
MPI_VARIABLES: Final = {"PATH": f"{_MPI}/bin:/usr/bin:/bin", "LD_LIBRARY_PATH": f"{_MPI}/lib"}

SSHD: Final = "Port 2222\nHostKey /home/mpiuser/.ssh/id_rsa\nPidFile /tmp/sshd.pid\nStrictModes no\n"
SSH: Final = "Host *\n  Port 2222\n"
SETTINGS: Final = "mpi-settings"
"""A ConfigMap with what the images of the shipped MPI runtimes have on their disk, and the lab's has not."""


def train_job(
    name: str,
    namespace: str,
    runtime: str,
    *,
    nodes: int = 2,
    on_sigterm: str = "exit 1",
    cpu: str = "10m",
    image: str = "python",
    command: tuple[str, ...] = RUN,
    **more: Any,
) -> Tree:
    """Return a TrainJob that trains until its file /tmp/finish exists; `more` adds to its spec."""
    with_launcher = command is MPIRUN
    rank_0 = f"{name}-{'launcher' if with_launcher else 'node'}-0-0.{name}"
    variables = {"RANKS": str(nodes), "RANK_0": rank_0, "ON_SIGTERM": on_sigterm, "OMP_NUM_THREADS": "1"}
    trainer: Tree = {
        "image": reference(image),
        "command": list(command),
        "env": [
            {"name": key, "value": value}
            for key, value in (variables | (MPI_VARIABLES if with_launcher else {})).items()
        ],
        "numNodes": nodes,
        "numProcPerNode": 1,
        "resourcesPerNode": {"requests": {"cpu": cpu, "memory": "16Mi"}},
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"runtimeRef": {"name": runtime}, "trainer": trainer, **more},
    }


def settings(namespace: str) -> Tree:
    """Return the ConfigMap that pods of MPI runtimes mount."""
    meta = {"name": SETTINGS, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"sshd": SSHD, "ssh": SSH}}


def with_settings(runtime: Tree) -> Tree:
    """Return a shipped MPI runtime whose pods mount the settings, with the lab's image."""
    mounts = [
        {"name": SETTINGS, "mountPath": path, "subPath": key}
        for key, path in (("sshd", "/home/mpiuser/.sshd_config"), ("ssh", "/etc/ssh/ssh_config.d/port.conf"))
    ]
    for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        pod = job["template"]["spec"]["template"]["spec"]
        pod["volumes"] = [{"name": SETTINGS, "configMap": {"name": SETTINGS}}]
        for container in pod["containers"]:
            container |= {"image": reference("mpi"), "imagePullPolicy": "Never", "volumeMounts": mounts}
    return runtime
