"""Runtimes and TrainJobs of these tests, as documents, and what tests ask of backends."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from trainplane.client.types.jobs import FINISHED

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from trainplane.client.backends.local.backend import LocalBackend
    from trainplane.client.types.jobs import TrainJob

Tree = dict[str, Any]
IMAGE = "lab.trainplane.dev/python:1"
TRAINER = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
DATASET = {"trainer.kubeflow.org/trainjob-ancestor-step": "dataset-initializer"}
SLEEP = "import time; print('begins', flush=True); time.sleep(600)"


MEET = """
import os, socket, time
rank, count = os.environ["PET_NODE_RANK"], os.environ["PET_NNODES"]
where = (os.environ["PET_MASTER_ADDR"], int(os.environ["PET_MASTER_PORT"]))
if rank == "0":
    server = socket.create_server(("", where[1]))
    peer, _ = server.accept()
    print("met", peer.recv(100).decode(), "of", count)
else:
    while True:
        try:
            peer = socket.create_connection(where)
            break
        except OSError:
            time.sleep(0.05)
    peer.sendall(b"node " + rank.encode())
    print("called", flush=True)
"""


def replicated(name: str, labels: Tree, container: Tree, *, job: Tree | None = None, pod: Tree | None = None) -> Tree:
    spec = {"terminationGracePeriodSeconds": 1, "containers": [{"image": IMAGE, **container}], **(pod or {})}
    return {
        "name": name,
        "template": {"metadata": {"labels": labels}, "spec": {**(job or {}), "template": {"spec": spec}}},
    }


def runtime(name: str, jobs: Iterable[Tree], *, policy: Tree | None = None, **jobset: Any) -> Tree:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, **({"torch": {}} if policy is None else policy)},
            "template": {"spec": {**jobset, "replicatedJobs": list(jobs)}},
        },
    }


def node(**more: Any) -> Tree:
    return replicated("node", TRAINER, {"name": "node"}, **more)


READ = "print('dataset:', open('/workspace/dataset/data.txt').read())"
WRITE = "import os; os.makedirs('/workspace/dataset'); open('/workspace/dataset/data.txt', 'w').write('rows')"
WORKSPACE = [{"name": "initializer", "mountPath": "/workspace"}]


def runtimes() -> list[Tree]:
    data = {"name": "dataset-initializer", "command": ["python3", "-c", WRITE], "volumeMounts": WORKSPACE}
    reader = replicated("node", TRAINER, {"name": "node", "volumeMounts": WORKSPACE})
    reader["dependsOn"] = [{"name": "dataset-initializer", "status": "Complete"}]
    claim = {"templates": [{"metadata": {"name": "initializer"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]}
    return [
        runtime("torch", [node()]),
        runtime("retried", [node(job={"backoffLimit": 2})]),
        runtime("restarted", [node()], failurePolicy={"maxRestarts": 1}),
        runtime("placed", [node(pod={"nodeSelector": {"pool": "a"}, "priorityClassName": "high"})]),
        runtime("fetched", [replicated("dataset-initializer", DATASET, data), reader], volumeClaimPolicies=[claim]),
        runtime("claimed", [node(pod={"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "big"}}]})]),
    ]


def mpi_runtime(image: str) -> Tree:
    """Return a runtime whose launcher starts processes on nodes over SSH, as docs/frameworks/mpi.md has it."""
    sshd = {
        "name": "node",
        "image": image,
        "command": ["/usr/sbin/sshd", "-De"],
        "ports": [{"name": "ssh", "containerPort": 22}],
        "readinessProbe": {"tcpSocket": {"port": 22}, "periodSeconds": 1},
    }
    launcher = replicated("launcher", TRAINER, {"name": "node", "image": image})
    launcher["dependsOn"] = [{"name": "node", "status": "Ready"}]
    policy = {"mpi": {"mpiImplementation": "OpenMPI", "sshAuthMountPath": "/root/.ssh", "runLauncherAsNode": False}}
    success = {"operator": "All", "targetReplicatedJobs": ["launcher"]}
    return runtime("mpi", [replicated("node", {}, sshd), launcher], policy=policy, successPolicy=success)


def write_runtime(folder: Path, document: Tree) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"{document['metadata']['name']}.json").write_text(json.dumps(document))
    return folder


def write_runtimes(folder: Path) -> Path:
    for document in runtimes():
        write_runtime(folder, document)
    return folder


def trainjob(
    name: str, code: str, *, nodes: int = 2, runtime: str = "torch", trainer: Tree | None = None, **spec: Any
) -> Tree:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": runtime, "kind": "ClusterTrainingRuntime", "apiGroup": "trainer.kubeflow.org"},
            "trainer": {"numNodes": nodes, "command": ["python3", "-uc", code], **(trainer or {})},
            **spec,
        },
    }


async def until(backend: LocalBackend, name: str, status: str) -> TrainJob:
    """Return the job as soon as it has a status."""
    async with aclosing(backend.watch_job(name)) as changes:
        async for job in changes:
            if job.status == status:
                return job
            assert job.status not in FINISHED, f"{job.status}: {job.cause}"
    raise AssertionError(f"{name} is gone")


async def until_steps(backend: LocalBackend, name: str, steps: list[str]) -> TrainJob:
    """Return the job as soon as it has just these steps."""
    async with aclosing(backend.watch_job(name)) as changes:
        async for job in changes:
            if [step.name for step in job.steps] == steps:
                return job
    raise AssertionError(f"{name} is gone")


async def until_printed(backend: LocalBackend, name: str, count: int) -> None:
    """Return when the steps have printed so many lines."""
    async with aclosing(backend.read_logs(name, None, follow=True)) as lines:
        async for _ in lines:
            count -= 1
            if not count:
                return
    raise AssertionError(f"{name} is over and printed less")


async def seen_until_over(backend: LocalBackend, name: str) -> list[str]:
    """Return the statuses that a job shows until it is over, each once."""
    seen: list[str] = []
    async with aclosing(backend.watch_job(name)) as changes:
        async for job in changes:
            if job.status not in seen[-1:]:
                seen.append(job.status)
            if job.status in FINISHED:
                break
    return seen


async def until_over(backend: LocalBackend, name: str) -> TrainJob:
    """Return the job when it is over."""
    await seen_until_over(backend, name)
    return await backend.get_job(name)


async def printed(
    backend: LocalBackend, name: str, steps: list[str] | None = None, *, follow: bool = True
) -> list[str]:
    async with aclosing(backend.read_logs(name, steps, follow=follow)) as lines:
        return [str(line) async for line in lines]


async def reasons(backend: LocalBackend, name: str, kind: str = "TrainJob") -> list[str]:
    return [event.reason for event in await backend.list_events(name) if event.involved_object_kind == kind]
