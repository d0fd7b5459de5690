"""Who takes part in an MPIJob: the names of its pods, and the two lists of them that `mpirun` and Horovod read.

The hostfile has every host that shall be, whether it is there or not. `discover_hosts.sh` prints those that run, for
programs that grow and shrink with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names as common
from trainplane.api.legacy import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainplane.legacy.mpi.job import MPIJob

HOSTFILE: Final = common.MPI_HOSTFILE
DISCOVER: Final = "discover_hosts.sh"
ROOM: Final = 1 << 20
"""Bytes that a ConfigMap holds: both lists have to fit, or there is no job."""


def launcher_name(job: str) -> str:
    """Name the launcher: its Job, and the host that its pod is."""
    return f"{job}-{names.ROLE_LAUNCHER}"


def worker_name(job: str, index: int) -> str:
    """Name a worker's pod, and the host that it is."""
    return names.pod_name(job, names.WORKER, index)


def worker_names(job: MPIJob) -> list[str]:
    """Return the pods that the job wants for workers, in order."""
    return [worker_name(job.name, index) for index in range(job.workers)]


def address(job: MPIJob, host: str, cluster_domain: str) -> str:
    """Return the name under which a host is reached from anywhere in the cluster."""
    suffix = f".{cluster_domain}" if cluster_domain else ""
    return f"{host}.{job.name}.{job.namespace}.svc{suffix}"


def hostfile(job: MPIJob, cluster_domain: str) -> str:
    """Return the list of all hosts with their slots, as the job's MPI reads it."""
    return "".join(
        f"{address(job, host, cluster_domain)}{_slots(job)}\n" for host in _and_launcher(job, worker_names(job))
    )


def discover_script(job: MPIJob, running: Iterable[str], cluster_domain: str) -> str:
    """Return the program that prints the hosts that run, given their pods."""
    hosts = _and_launcher(job, sorted(running))
    return "".join(["#!/bin/sh\n", *(f"echo {address(job, host, cluster_domain)}\n" for host in hosts)])


def longest_lists(job: MPIJob, cluster_domain: str) -> int:
    """Return how many bytes both lists have at most. Counts, and builds nothing: a million workers cost no more."""
    line = address(job, worker_name(job.name, max(job.workers - 1, 0)), cluster_domain)
    return (max(job.workers, 0) + job.launcher_trains) * (2 * len(line) + len(f"{_slots(job)}\necho \n"))


def _slots(job: MPIJob) -> str:
    return f" slots={job.slots}" if job.implementation == names.MPI_OPENMPI else f":{job.slots}"


def _and_launcher(job: MPIJob, workers: Iterable[str]) -> Iterator[str]:
    if job.launcher_trains:
        yield launcher_name(job.name)
    yield from workers
