"""MPIJobs with real pods: a launcher that reaches its workers over SSH, in an image as its user might have built it."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from lab.images import reference as image
from lab.processes import wait_for
from tests.fleet.api import Api

if TYPE_CHECKING:
    from lab.cluster import Cluster

Tree = dict[str, Any]

NAMESPACE = "default"
_PATIENCE = 180.0
_FOLDER = "/opt/openmpi4"
_PROGRAM = """
import socket
from mpi4py import MPI

world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
hosts = set(world.allgather(socket.gethostname()))
if world.rank == 0:
    print(f"{world.size} processes on {len(hosts)} hosts, sum {total}", flush=True)
"""
_SSHD = "ssh-keygen -A && exec /usr/sbin/sshd -De -o StrictModes=no"
"""The lab's image has no host keys, and mounted folders are open to all."""
_TRUST = "printf 'Host *\\n  StrictHostKeyChecking no\\n' > /etc/ssh/ssh_config.d/mpi.conf"
_LAUNCH = f'{_TRUST} && exec {_FOLDER}/bin/mpirun --allow-run-as-root -np 4 python3 -c "$PROGRAM"'


def _replica(script: str, count: int, **container: Any) -> Tree:
    settings = {
        "PATH": f"{_FOLDER}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LD_LIBRARY_PATH": f"{_FOLDER}/lib",
        "PROGRAM": _PROGRAM,
    }
    main = {
        "name": "mpi",
        "image": image("mpi"),
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", script],
        "env": [{"name": name, "value": value} for name, value in settings.items()],
        **container,
    }
    return {"replicas": count, "template": {"spec": {"terminationGracePeriodSeconds": 0, "containers": [main]}}}


def _replicas() -> Tree:
    probe = {"tcpSocket": {"port": 22}, "periodSeconds": 1}
    return {"Launcher": _replica(_LAUNCH, 1), "Worker": _replica(_SSHD, 2, readinessProbe=probe)}


def _is_over(api: Api, name: str) -> bool:
    job = api.get("mpijobs", NAMESPACE, name) or {}
    ends = {one["type"]: one for one in job.get("status", {}).get("conditions", ()) if one["status"] == "True"}
    assert "Failed" not in ends, ends["Failed"]
    return "Succeeded" in ends


def _printed(cluster: Cluster, name: str) -> str:
    selector = f"training.kubeflow.org/job-name={name},training.kubeflow.org/job-role=launcher"
    return cluster.kubectl("logs", f"--selector={selector}", "--tail=-1").stdout


def test_ranks_on_two_pods_meet_over_ssh_in_either_version(node_cluster: Cluster) -> None:
    api = Api(node_cluster)
    metadata = {"namespace": NAMESPACE}
    newer: Tree = {"slotsPerWorker": 2, "launcherCreationPolicy": "WaitForWorkersReady", "mpiReplicaSpecs": _replicas()}
    older: Tree = {"slotsPerWorker": 2, "cleanPodPolicy": "All", "mpiReplicaSpecs": _replicas()}
    older["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "OnFailure"
    for version, spec in (("v2beta1", newer), ("v1", older)):
        job = {"apiVersion": f"kubeflow.org/{version}", "kind": "MPIJob", "metadata": {**metadata, "name": version}}
        node_cluster.kubectl("create", "-f", "-", stdin=json.dumps({**job, "spec": spec}))
    for name in ("v2beta1", "v1"):
        wait_for(f"{name} to succeed", partial(_is_over, api, name), seconds=_PATIENCE)
        assert "4 processes on 2 hosts, sum 10" in _printed(node_cluster, name)
    left = "training.kubeflow.org/job-name=v1,training.kubeflow.org/job-role=worker"
    wait_for("the workers of v1 to go", lambda: not api.list("pods", NAMESPACE, labels=left), seconds=_PATIENCE)
