"""What every kind of v1 says of itself; most do as is written here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from trainplane.api.legacy import names

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.legacy.decision import Settings
    from trainplane.legacy.job import Job, Member
    from trainplane.legacy.tally import Tally


def variable(name: str, value: object) -> Tree:
    """Return an environment variable."""
    return {"name": name, "value": str(value)}


UNBUFFERED = variable("PYTHONUNBUFFERED", 1)
"""Lines of a log appear when they are written."""


class Framework(ABC):
    """One kind of v1."""

    @abstractmethod
    def variables(self, job: Job, member: Member, settings: Settings) -> list[Tree]:
        """Return what a pod is told of itself and of the others; it outranks what the template says."""

    def tells(self, job: Job, container: Tree) -> bool:
        """Return whether a container of a pod is told."""
        del job, container
        return True

    def init_containers(self, job: Job, member: Member, settings: Settings) -> list[Tree]:
        """Return what runs before a pod's own containers, after its own init containers."""
        del job, member, settings
        return []

    def leaders(self, job: Job) -> tuple[str, ...]:
        """Return the types whose pods decide how the job is doing: the master where there is one, else the workers."""
        return (names.MASTER,) if names.MASTER in job.replicas else (names.WORKER,)

    def is_master(self, job: Job, member: Member) -> bool:
        """Return whether a pod is labelled as the one that the others look up to, whose logs old clients show."""
        del job
        return member.type == names.MASTER

    def is_done(self, job: Job, tally: Tally) -> bool:
        """Return whether the job has done its work: every pod of a leading type succeeded."""
        return any(one in job.replicas and tally.counts[one].succeeded == job.count(one) for one in self.leaders(job))

    def forgives(self, job: Job, member: Member) -> bool:
        """Return whether the job goes on without a pod that failed and is not restarted."""
        del job, member
        return False
