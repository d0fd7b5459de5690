"""JAXJob: workers that meet at worker 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api.legacy import names
from trainplane.legacy.frameworks.framework import UNBUFFERED, Framework, variable

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.legacy.decision import Settings
    from trainplane.legacy.job import Job, Member


class Jax(Framework):
    """Serves JAXJobs."""

    def variables(self, job: Job, member: Member, settings: Settings) -> list[Tree]:
        """Return where the coordinator is, how many processes there are and which one this is."""
        del settings
        return [
            UNBUFFERED,
            variable("COORDINATOR_PORT", job.port(names.WORKER)),
            variable("COORDINATOR_ADDRESS", job.pod_name(names.WORKER)),
            variable("NUM_PROCESSES", job.total),
            variable("PROCESS_ID", member.number),
        ]

    def is_master(self, job: Job, member: Member) -> bool:
        """Return whether it is the pod that the others look up to."""
        del job
        return member.number == 0
