"""The cluster that notebooks and pages run on, and the runtimes on it, with the lab's images."""

from __future__ import annotations

import functools
import os
import uuid
from typing import TYPE_CHECKING, Any

import yaml

from lab import profiles, trainplane
from lab.images import reference as image
from lab.paths import REPOSITORY
from tests.e2e.pages import documents

if TYPE_CHECKING:
    from lab.cluster import Cluster

Tree = dict[str, Any]

IMAGES = {
    "torch-distributed": "torch",
    "jax-distributed": "frameworks",
    "xgboost-distributed": "frameworks",
    "tensorflow-distributed": "frameworks",
}
"""Runtimes that we ship → the lab's image that has their framework."""


@functools.cache
def shared_cluster() -> Cluster:
    """Return one cluster with our operator for all that run here; whoever asked takes it down at the end."""
    (cluster,) = profiles.up("node", f"pages-{os.getpid()}", owned=True)
    trainplane.install(cluster)
    return cluster


def make_namespace(cluster: Cluster) -> str:
    """Return a namespace of its own."""
    namespace = f"pages-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", namespace)
    return namespace


def runtime(name: str) -> Tree:
    """Return a runtime that we ship, with the lab's image."""
    if name == "deepspeed-distributed":  # its image has a user and a configuration of sshd that the lab's has not
        like, _ = documents("mpi", "torch")
        return like | {"metadata": like["metadata"] | {"name": name}}
    found: Tree = yaml.safe_load((REPOSITORY / "runtimes" / f"{name}.yaml").read_text())
    for replicated in found["spec"]["template"]["spec"]["replicatedJobs"]:
        pod = replicated["template"]["spec"]["template"]["spec"]
        pod["terminationGracePeriodSeconds"] = 0
        for container in pod["containers"]:
            container |= {"image": image(IMAGES[name]), "imagePullPolicy": "Never"}
    return found
