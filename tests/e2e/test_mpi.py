"""MPI across pods: every implementation, as a plain user and as root, with the page's example.

All of one user's TrainJobs are begun at once, so that they wait for each other's pods and not for each other.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.e2e.pages import additions, documents, with_addition
from tests.e2e.user import User

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster

_ANNOTATION: Final = "trainer.kubeflow.org/mpi-implementation"
IMPLEMENTATIONS: Final = {"openmpi4": "OpenMPI", "openmpi5": "OpenMPI", "mpich": "MPICH", "intel": "Intel"}
"""The folder of /opt in the lab's image → what it is to the plugin."""
_SETTINGS: Final = {"PATH": "{}/bin:/usr/bin:/bin", "LD_LIBRARY_PATH": "{}/lib", "I_MPI_ROOT": "{}"}
"""What an image with one of them alone would say itself."""


def _documents(who: str, folder: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the page's runtime, as the page changes it for a user and an implementation, and its TrainJob."""
    runtime, job = documents("mpi", "mpi")
    for_plain_user, for_others = additions("mpi")
    if who == "plain":
        runtime = with_addition(runtime, for_plain_user)
    if IMPLEMENTATIONS[folder] != "OpenMPI":
        assert _ANNOTATION in for_others["metadata"]["annotations"]
        runtime = with_addition(runtime, {"metadata": {"annotations": {_ANNOTATION: IMPLEMENTATIONS[folder]}}})
    name = f"{folder}-{who}"
    runtime["metadata"]["name"] = job["metadata"]["name"] = job["spec"]["runtimeRef"]["name"] = name
    trainer = job["spec"]["trainer"]
    trainer["command"] = [f"/opt/{folder}/bin/{trainer['command'][0]}", *trainer["command"][1:]]
    settings = {name: value.format(f"/opt/{folder}") for name, value in _SETTINGS.items()}
    trainer["env"] = [{"name": name, "value": value} for name, value in settings.items()]
    return runtime, job


def _with_impostors(who: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a TrainJob whose nodes let everybody in, and show a key that is not the TrainJob's."""
    runtime, job = _documents(who, "openmpi4")
    runtime["metadata"]["name"] = job["metadata"]["name"] = job["spec"]["runtimeRef"]["name"] = f"impostors-{who}"
    pods = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    (container,) = pods["containers"]
    folder, port = runtime["spec"]["mlPolicy"]["mpi"]["sshAuthMountPath"], container["ports"][0]["containerPort"]
    settings = (
        f"Port={port}",
        "HostKey=/tmp/other",
        f"AuthorizedKeysFile={folder}/authorized_keys",
        "StrictModes=no",
        "PidFile=none",
    )
    sshd = f"exec /usr/sbin/sshd -De -f /dev/null {' '.join(f'-o {setting}' for setting in settings)}"
    container["command"] = ["sh", "-c", f"ssh-keygen -q -t ecdsa -b 521 -N '' -f /tmp/other && {sshd}"]
    return runtime, job


@pytest.fixture(scope="module", params=["plain", "root"])
def who(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def started(cluster: Cluster, who: str) -> Iterator[User]:
    user = User(cluster, f"test-{uuid.uuid4().hex[:8]}")
    cluster.kubectl("create", "namespace", user.namespace)
    user.apply(*(document for folder in IMPLEMENTATIONS for document in _documents(who, folder)), *_with_impostors(who))
    yield user
    cluster.kubectl("delete", "namespace", user.namespace, "--wait=false")


@pytest.mark.parametrize("folder", IMPLEMENTATIONS)
def test_allreduce_across_two_pods(started: User, who: str, folder: str) -> None:
    name = f"{folder}-{who}"
    started.wait_state(name, "Succeeded")
    lines = started.logs(name, "launcher")
    assert any("4 processes on 2 hosts, sum 10" in line for line in lines), "\n".join(lines)


def test_a_host_with_another_key_is_refused(started: User, who: str) -> None:
    name = f"impostors-{who}"

    def refused() -> bool:
        printed = started.kubectl("logs", f"--selector=job-name={name}-launcher-0", "--tail=-1", check=False).stdout
        return "Host key verification failed" in printed

    started.wait("ssh to refuse the nodes", refused)
    assert started.state(name) != "Succeeded"
