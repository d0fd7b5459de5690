"""What an MPIJob needs beside its pods: names, keys, and the lists of hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names as common
from trainplane.api.legacy import names
from trainplane.api.legacy.kinds import MPI
from trainplane.legacy.mpi import hosts
from trainplane.render.plan import CreateOnce
from trainplane.render.plugins.mpi import make_keys

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.api.tree import Tree
    from trainplane.legacy.mpi.job import MPIJob


def config_name(job: str) -> str:
    """Name the ConfigMap with the lists of hosts."""
    return f"{job}-config"


def secret_name(job: str) -> str:
    """Name the Secret with the keys."""
    return f"{job}-ssh"


def service(job: MPIJob) -> Tree:
    """Return the headless Service that gives launcher and workers their names.

    A launcher that trains would wait for its own name until it is ready, so then names precede readiness.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": job.metadata(job.name),
        "spec": {
            "clusterIP": "None",
            "selector": {names.LABEL_OPERATOR_NAME: MPI.operator, names.LABEL_JOB_NAME: job.name},
            "publishNotReadyAddresses": job.launcher_trains,
        },
    }


def config(job: MPIJob, running: Iterable[str], cluster_domain: str) -> Tree:
    """Return the ConfigMap with the lists of hosts, given the workers' pods that run."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": job.metadata(config_name(job.name)),
        "data": {
            hosts.HOSTFILE: hosts.hostfile(job, cluster_domain),
            hosts.DISCOVER: hosts.discover_script(job, running, cluster_domain),
        },
    }


def keys(job: MPIJob) -> CreateOnce:
    """Return the Secret with a pair of keys, drawn when it is made. One that mpi-operator drew serves as well."""
    labels = job.metadata(job.name)["labels"]

    def make() -> Tree:
        return {**make_keys(), "metadata": {"labels": labels}}

    wanted = (common.MPI_SSH_PRIVATE_KEY, common.MPI_SSH_PUBLIC_KEY)
    return CreateOnce("v1", "Secret", secret_name(job.name), make, wanted)
