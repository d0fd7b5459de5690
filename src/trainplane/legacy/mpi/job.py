"""An MPIJob of v2beta1 as a value: what stands in it, and what is meant where nothing stands.

The tree is a user's, so a part of the wrong type reads as one that is not there. `judgement` says what is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.api.legacy import names
from trainplane.api.legacy.kinds import MPI

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

SSH_MOUNT_PATH: Final = "/root/.ssh"
SLOTS: Final = 1


@dataclass(frozen=True, slots=True)
class MPIJob:
    """An MPIJob, read."""

    tree: Tree

    @property
    def name(self) -> str:
        """Its name, which is the Service's and the PodGroup's too."""
        return trees.text(self.tree, "metadata", "name") or ""

    @property
    def namespace(self) -> str:
        """The namespace of the job and of everything it becomes."""
        return trees.text(self.tree, "metadata", "namespace") or ""

    @property
    def status(self) -> Tree:
        """What was last said of it."""
        return trees.fields(self.tree, "status")

    @property
    def policy(self) -> Tree:
        """Its `runPolicy`."""
        return trees.fields(self.tree, "spec", "runPolicy")

    @property
    def scheduling(self) -> Tree:
        """What it tells a gang scheduler."""
        return trees.fields(self.policy, "schedulingPolicy")

    @property
    def suspended(self) -> bool:
        """Whether it is held back."""
        return self.policy.get("suspend") is True

    @property
    def clean(self) -> str:
        """Which worker pods go when the job is over: None, Running or All."""
        return trees.text(self.policy, "cleanPodPolicy") or names.CLEAN_NONE

    @property
    def slots(self) -> int:
        """Processes that a host has room for."""
        said = trees.number(self.tree, "spec", "slotsPerWorker")
        return SLOTS if said is None else said

    @property
    def implementation(self) -> str:
        """Which MPI is in the image."""
        return trees.text(self.tree, "spec", "mpiImplementation") or names.MPI_OPENMPI

    @property
    def ssh_folder(self) -> str:
        """Where pods have their keys."""
        return trees.text(self.tree, "spec", "sshAuthMountPath") or SSH_MOUNT_PATH

    @property
    def launcher_trains(self) -> bool:
        """Whether the launcher is one of the hosts."""
        return trees.get(self.tree, "spec", "runLauncherAsWorker") is True

    @property
    def launcher_waits(self) -> bool:
        """Whether the launcher is made only when every worker is ready."""
        return trees.text(self.tree, "spec", "launcherCreationPolicy") == names.LAUNCHER_WAITS

    @property
    def workers(self) -> int:
        """How many workers it wants."""
        return trees.number(self.replica(names.WORKER), "replicas") or 0

    @property
    def owner(self) -> Tree:
        """The reference by which an object is the job's own, and goes with it."""
        return {
            "apiVersion": MPI.api_version,
            "kind": MPI.name,
            "name": self.name,
            "uid": trees.text(self.tree, "metadata", "uid") or "",
            "controller": True,
            "blockOwnerDeletion": True,
        }

    def replica(self, replica_type: str) -> Tree:
        """Return what it says of its launcher or of its workers."""
        return trees.fields(self.tree, "spec", MPI.specs, replica_type)

    def restart(self, replica_type: str) -> str:
        """Return the restart policy of such replicas."""
        return trees.text(self.replica(replica_type), "restartPolicy") or MPI.restart_of(replica_type)

    def metadata(self, name: str) -> Tree:
        """Return the metadata of an object of the job."""
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": {"app": self.name},
            "ownerReferences": [self.owner],
        }

    def labels(self, role: str) -> Tree:
        """Return the labels by which pods of a role are found: by the Service, by Kueue, by people."""
        return {
            names.LABEL_OPERATOR_NAME: MPI.operator,
            names.LABEL_JOB_NAME: self.name,
            names.LABEL_JOB_ROLE: role,
        }
