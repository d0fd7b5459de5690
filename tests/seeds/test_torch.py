"""Torch as the documents promise: arguments alone are run by torchrun, and every node knows the first by its names.

All TrainJobs are begun at once: they wait for each other's pods, and not for each other.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from lab.images import reference as image
from lab.paths import REPOSITORY
from tests.e2e.user import User
from tests.size import FULL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster

Tree = dict[str, Any]

ARGUMENTS: Final = ["/code/train.py", "--epochs=2"]
NAMES: Final = ("MASTER_ADDR", "MASTER_PORT")
PROGRAM: Final = f"""
import json, os, sys
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1])
dist.all_reduce(total)
with open("/proc/1/environ") as first, open("/proc/1/cmdline") as line:
    node = dict(entry.split("=", 1) for entry in first.read().split("\\0") if "=" in entry)
    command = line.read().split("\\0")
told = {{
    "args": sys.argv[1:],
    "command": [word for word in command if word.endswith("torchrun")],
    "node": {{name: node.get(name) for name in {NAMES}}},
    "mine": {{name: os.environ[name] for name in {NAMES}}},
    "size": dist.get_world_size(),
    "total": total.item(),
}}
print(json.dumps(told), flush=True)
dist.destroy_process_group()
"""
MEETING: Final = """
import os, socket, time

address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if os.environ["PET_NODE_RANK"] == "0":
    guest, _ = socket.create_server(("", address[1])).accept()
    print(guest.recv(64).decode(), flush=True)
else:
    while True:
        try:
            host = socket.create_connection(address, timeout=5)
            break
        except OSError:  # the first node is not there yet
            time.sleep(0.2)
    host.sendall("met at {}:{}".format(*address).encode())
"""
"""Two processes that torchrun does not start: one comes to where the other is said to be."""


def _runtime(name: str) -> Tree:
    """Return a runtime that we ship, with the lab's image and the program on a volume."""
    runtime: Tree = yaml.safe_load((REPOSITORY / f"runtimes/{name}.yaml").read_text())
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    pod = job["template"]["spec"]["template"]["spec"]
    pod |= {"terminationGracePeriodSeconds": 0, "volumes": [{"name": "code", "configMap": {"name": "code"}}]}
    (container,) = pod["containers"]
    container |= {
        "image": image("torch"),
        "imagePullPolicy": "Never",
        "volumeMounts": [{"name": "code", "mountPath": "/code"}],
    }
    assert "command" not in container
    return runtime


def _job(name: str, runtime: str, **trainer: Any) -> Tree:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {"runtimeRef": {"name": runtime}, "trainer": {"numNodes": 2, **trainer}},
    }


@pytest.fixture(scope="module")
def team(cluster: Cluster) -> Iterator[User]:
    """Return a user who has begun every TrainJob of this module."""
    user = User(cluster, f"test-{uuid.uuid4().hex[:8]}")
    cluster.kubectl("create", "namespace", user.namespace)
    own = [{"name": "MASTER_PORT", "value": "23456"}]
    user.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code"}, "data": {"train.py": PROGRAM}},
        _runtime("torch-distributed"),
        _runtime("torch-elastic"),
        _job("static", "torch-distributed", args=ARGUMENTS),
        *([_job("elastic", "torch-elastic", args=ARGUMENTS)] if FULL else ()),
        _job("plain", "torch-distributed", command=["python3", "-c", MEETING], env=own),
    )
    yield user
    cluster.kubectl("delete", "namespace", user.namespace, "--wait=false")


def _told(user: User, job: str) -> list[Tree]:
    user.wait_state(job, "Succeeded")
    lines = user.logs(job)
    told = [json.loads(line) for line in lines if line.startswith('{"args"')]
    assert [(one["size"], one["total"]) for one in told] == [(2, 3), (2, 3)], "\n".join(lines)
    return told


@pytest.mark.parametrize("job", ["static", pytest.param("elastic", marks=pytest.mark.full)])
def test_arguments_alone_are_run_by_torchrun(team: User, job: str) -> None:
    for one in _told(team, job):
        assert one["args"] == ARGUMENTS[1:]
        assert len(one["command"]) == 1, "the pod's first process is not torchrun"
        assert one["node"] == {"MASTER_ADDR": f"{job}-node-0-0.{job}", "MASTER_PORT": "29500"}


@pytest.mark.parametrize("job", ["static", pytest.param("elastic", marks=pytest.mark.full)])
def test_torchruns_children_meet_where_torchrun_says(team: User, job: str) -> None:
    one, other = _told(team, job)
    assert one["mine"] == other["mine"]


def test_processes_that_torchrun_does_not_start_meet_at_the_first_node(team: User) -> None:
    team.wait_state("plain", "Succeeded")
    assert team.logs("plain") == ["met at plain-node-0-0.plain:23456"], "the user's own port stays"
