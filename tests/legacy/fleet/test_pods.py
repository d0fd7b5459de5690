"""Dispatched jobs with real pods: documents as users have them, and their logs through the hub, also afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from lab.images import reference as image
from tests.legacy.fleet.jobs import Jobs
from trainplane.api.legacy.kinds import MPI, PYTORCH

if TYPE_CHECKING:
    from tests.fleet.team import MakeTeam, Team

Tree = dict[str, Any]

_OLD = Path(__file__).parents[1] / "old"
_MPI = {"PATH": "/opt/openmpi4/bin:/usr/bin:/bin", "LD_LIBRARY_PATH": "/opt/openmpi4/lib"}
"""What an image with one MPI alone would say itself."""
_SSHD = "exec /usr/sbin/sshd -De -f /dev/null -o HostKey=/root/.ssh/id_rsa -o StrictModes=no -o PidFile=none"
"""The lab's image has no host keys."""
_SSH = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ConnectionAttempts=20"


@pytest.fixture
def ours(team: MakeTeam) -> Team:
    """Return a team that has the program of the samples on the worker: MultiKueue copies the job alone."""
    made = team()
    program = {"meet.py": (_OLD / "meet.py").read_text()}
    metadata = {"name": "programs", "namespace": made.namespace}
    made.api("worker1").apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": program})
    return made


def test_the_pytorchjob_of_kueues_documents_runs_as_written(ours: Team) -> None:
    jobs, name = Jobs(ours, PYTORCH), "pytorch-simple"
    jobs.create(yaml.safe_load((_OLD / "samples/pytorchjob.yaml").read_text()))
    jobs.wait_condition(name, "Succeeded")
    jobs.wait_gone(name, on="worker1")
    jobs.wait("log of its master", lambda: jobs.log(name) == ["all 2 processes met"])
    jobs.wait("log of its worker", lambda: jobs.log(name, "step=worker") == ["one of 2 processes met the first"])
    jobs.wait("its end in the view", lambda: _end(jobs, name) == ("worker1", "Succeeded"))
    jobs.wait("news of its end", lambda: ("PyTorchJob", "PyTorchJobSucceeded") in _events(jobs, name))


def _events(jobs: Jobs, name: str) -> set[tuple[str, str]]:
    return {(one["involvedObject"]["kind"], one["reason"]) for one in jobs.shown(name, "events").get("items", ())}


def _end(jobs: Jobs, name: str) -> tuple[str, str]:
    status = jobs.shown(name).get("status", {})
    return status.get("cluster", ""), status.get("state", "")


def test_an_mpijob_runs_over_ssh_and_its_launcher_is_read(ours: Team) -> None:
    jobs = Jobs(ours, MPI)
    script = "echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE"
    run = ["/opt/openmpi4/bin/mpirun", "--allow-run-as-root", "-n", "2", "--mca", "plm_rsh_args", _SSH]
    jobs.create(
        {
            "apiVersion": MPI.api_version,
            "kind": MPI.name,
            "metadata": {"name": "pi"},
            "spec": {
                "slotsPerWorker": 1,
                "runPolicy": {"cleanPodPolicy": "Running"},
                "mpiReplicaSpecs": {
                    "Launcher": {"replicas": 1, "template": _template([*run, "sh", "-c", script])},
                    "Worker": {"replicas": 2, "template": _template(["sh", "-c", _SSHD])},
                },
            },
        }
    )
    jobs.wait_condition("pi", "Succeeded")
    jobs.wait_gone("pi", on="worker1")
    jobs.wait("log of its launcher", lambda: {"rank 0 of 2", "rank 1 of 2"} <= set(jobs.log("pi")))


def _template(command: list[str]) -> Tree:
    container = {
        "name": "mpi",
        "image": image("mpi"),
        "command": command,
        "env": [{"name": name, "value": value} for name, value in _MPI.items()],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
    }
    return {"spec": {"containers": [container], "terminationGracePeriodSeconds": 1}}
