"""Clusters that live suites share.

With `TRAINPLANE_SHARED=PREFIX`, the first test that needs a shared cluster starts it as PREFIX-NAME and leaves it
running, for other suites and for the next run; `python -m lab down --all` ends it. Without the variable, each run
starts its own, which ends with the run.

Each test has a namespace of its own in it. A test that kills or reconfigures an engine has a cluster of its own.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from lab import node, profiles, trainplane
from lab.cluster import Cluster
from lab.errors import NoClusterError
from lab.paths import cache_root
from lab.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VARIABLE = "TRAINPLANE_SHARED"
GPUS = "16"
KUBELET = {"localStorageCapacityIsolation": True, "volumeStatsAggPeriod": "5s"}
"""A kubelet that evicts pods which write more than they may, and measures often."""


class Running(Protocol):
    """A cluster, or several that belong together."""

    def down(self) -> None:
        """End it."""


R = TypeVar("R", bound=Running)


@contextmanager
def shared(name: str, find: Callable[[str], R], start: Callable[[str, bool], R]) -> Iterator[R]:
    """Yield what runs under a name.

    Args:
        name: what it is called, behind the prefix.
        find: returns it by its name, or raises NoClusterError.
        start: starts it under a name; the flag says whether it belongs to this process and ends with it.
    """
    prefix = os.environ.get(VARIABLE, "")
    if prefix:
        with _locked(f"{prefix}-{name}"):
            try:
                running = find(f"{prefix}-{name}")
            except NoClusterError:
                running = start(f"{prefix}-{name}", False)
        yield running
        return
    running = start(f"{name}-{os.getpid()}", True)
    try:
        yield running
    finally:
        running.down()


@contextmanager
def node_cluster() -> Iterator[Cluster]:
    """Yield the shared cluster with a node that runs pods, JobSet, and our operator."""
    with shared("nodes", Cluster.find, _start_node) as cluster:
        yield cluster


@contextmanager
def own_node_cluster(name: str) -> Iterator[Cluster]:
    """Yield a cluster like the shared one for tests that kill or reconfigure engines; it ends with the context."""
    with profiles.node_with(_equip, name, **KUBELET) as cluster:
        yield cluster


def _start_node(name: str, owned: bool) -> Cluster:
    return profiles.up_node(name, _equip, owned=owned, **KUBELET)


def _equip(cluster: Cluster) -> None:
    _advertise_gpus(cluster)
    trainplane.install(cluster)


def _advertise_gpus(cluster: Cluster) -> None:
    """Let the node offer GPUs: the scheduler and the kubelet count them, no pod looks for one."""
    patch = json.dumps({"status": {"capacity": {"nvidia.com/gpu": GPUS}}})
    cluster.kubectl("patch", "node", node.NAME, "--subresource=status", "--type=merge", f"--patch={patch}")

    def offered() -> bool:
        allocatable: dict[str, Any] = cluster.get("node", node.NAME)["status"]["allocatable"]
        return allocatable.get("nvidia.com/gpu") == GPUS

    wait_for("the node's GPUs", offered, seconds=60)


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """Hold a lock that other processes of this machine respect: two suites may need a cluster at the same time."""
    folder = cache_root()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
