"""One node cluster for the whole suite: our operator beside its API server, its node with GPUs in name only."""

from __future__ import annotations

import json
import os
import uuid
from typing import TYPE_CHECKING

import pytest

from lab import node, profiles, trainplane
from lab.processes import wait_for
from tests.e2e.user import User

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster

GPUS = "16"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    (cluster,) = profiles.up("node", f"e2e-{os.getpid()}", owned=True)
    try:
        _advertise_gpus(cluster)
        trainplane.install(cluster)
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
def user(cluster: Cluster) -> Iterator[User]:
    """Return a user in a namespace of the test's own; it is deleted afterwards, without waiting."""
    user = User(cluster, f"test-{uuid.uuid4().hex[:8]}")
    cluster.kubectl("create", "namespace", user.namespace)
    yield user
    cluster.kubectl("delete", "namespace", user.namespace, "--wait=false")


def _advertise_gpus(cluster: Cluster) -> None:
    """Let the node offer GPUs: the scheduler and the kubelet count them, no pod looks for one."""
    patch = json.dumps({"status": {"capacity": {"nvidia.com/gpu": GPUS}}})
    cluster.kubectl("patch", "node", node.NAME, "--subresource=status", "--type=merge", f"--patch={patch}")

    def offered() -> bool:
        allocatable: dict[str, str] = cluster.get("node", node.NAME)["status"]["allocatable"]
        return allocatable.get("nvidia.com/gpu") == GPUS

    wait_for("the node's GPUs", offered, seconds=60)
