"""MPI as the documents promise: every spelling of an implementation is taken, and gradients are averaged by MPI.

Horovod's way, with MPI alone: each process has data of its own, and after each step all have the mean of their
gradients.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.e2e.pages import documents
from tests.e2e.user import User

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster

Tree = dict[str, Any]

SPELLINGS: Final = {"OpenMPI": None, "Intel": "Intel", "IntelMPI": "Intel", "MPICH": "MPICH"}
"""What a runtime writes → the annotation that is stored. `tests/e2e/test_mpi.py` trains with each of them."""
WRITTEN: Final = "IntelMPI"
ANNOTATION: Final = "trainer.kubeflow.org/mpi-implementation"
PROGRAM: Final = """
from mpi4py import MPI

world = MPI.COMM_WORLD
points = [(x / 8, 3 * x / 8 + 1) for x in range(world.rank * 8, world.rank * 8 + 8)]
weight = bias = 0.0
for step in range(400):
    off = [(weight * x + bias - y, x) for x, y in points]
    mine = [sum(one * x for one, x in off) / len(off), sum(one for one, _ in off) / len(off)]
    mean = [world.allreduce(part) / world.size for part in mine]
    weight, bias = weight - 0.1 * mean[0], bias - 0.1 * mean[1]
weights = world.allgather((weight, bias))
assert len(set(weights)) == 1, weights
if world.rank == 0:
    print(f"{world.size} processes agree on w={weight:.2f} b={bias:.2f}", flush=True)
"""


def _runtime(written: str) -> tuple[Tree, Tree]:
    """Return the page's runtime with an implementation, written as documents do, and the page's TrainJob for it."""
    runtime, job = documents("mpi", "mpi")
    name = written.lower()
    runtime["metadata"]["name"] = job["metadata"]["name"] = job["spec"]["runtimeRef"]["name"] = name
    runtime["spec"]["mlPolicy"]["mpi"]["mpiImplementation"] = written
    return runtime, job


@pytest.fixture(scope="module")
def team(cluster: Cluster) -> Iterator[User]:
    """Return a user who has begun a TrainJob with Intel MPI, and has a runtime of each spelling."""
    user = User(cluster, f"test-{uuid.uuid4().hex[:8]}")
    cluster.kubectl("create", "namespace", user.namespace)
    runtime, job = _runtime(WRITTEN)
    settings = {"PATH": "/opt/intel/bin:/usr/bin:/bin", "LD_LIBRARY_PATH": "/opt/intel/lib", "I_MPI_ROOT": "/opt/intel"}
    job["spec"]["trainer"] |= {
        "numProcPerNode": 1,
        "command": ["/opt/intel/bin/mpirun", "python3", "-c", PROGRAM],
        "env": [{"name": name, "value": value} for name, value in settings.items()],
    }
    others = (_runtime(written)[0] for written in SPELLINGS if written != WRITTEN)
    user.apply(runtime, job, *others)
    yield user
    cluster.kubectl("delete", "namespace", user.namespace, "--wait=false")


@pytest.mark.parametrize("written", SPELLINGS)
def test_what_is_stored_is_what_kueue_can_read(team: User, written: str) -> None:
    stored = team.get("clustertrainingruntime", written.lower())
    assert stored["spec"]["mlPolicy"]["mpi"]["mpiImplementation"] == "OpenMPI"
    assert stored["metadata"]["annotations"].get(ANNOTATION) == SPELLINGS[written]


def test_the_same_file_again_changes_nothing(team: User) -> None:
    runtime, _ = _runtime(WRITTEN)
    before = team.get("clustertrainingruntime", WRITTEN.lower())["metadata"]["generation"]
    answer = team.apply(runtime)
    assert "For OpenMPI again, take that away" in answer.stderr
    assert team.get("clustertrainingruntime", WRITTEN.lower())["metadata"]["generation"] == before


def test_gradients_are_averaged_by_mpi(team: User) -> None:
    team.wait_state(WRITTEN.lower(), "Succeeded")
    lines = team.logs(WRITTEN.lower(), "launcher")
    assert any("2 processes agree on w=3.00 b=1.00" in line for line in lines), "\n".join(lines)
