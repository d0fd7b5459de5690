"""XGBoostJob: the tracker on the master, and for LightGBM the addresses of all workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api.legacy import names
from trainplane.legacy.frameworks.framework import UNBUFFERED, Framework, variable

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.legacy.decision import Settings
    from trainplane.legacy.job import Job, Member


class XGBoost(Framework):
    """Serves XGBoostJobs."""

    def variables(self, job: Job, member: Member, settings: Settings) -> list[Tree]:
        """Return where the tracker is, how many there are and which one this is."""
        del settings
        rank = member.number + (job.count(names.MASTER) if member.type == names.WORKER else 0)
        found = [
            variable("MASTER_PORT", job.port(names.MASTER)),
            variable("MASTER_ADDR", job.pod_name(names.MASTER)),
            variable("WORLD_SIZE", job.total),
            variable("RANK", rank),
            UNBUFFERED,
        ]
        if job.total > 1:
            workers = (job.pod_name(names.WORKER, index) for index in range(job.total - 1))
            found += [variable("WORKER_PORT", job.port(names.WORKER)), variable("WORKER_ADDRS", ",".join(workers))]
        return found

    def leaders(self, job: Job) -> tuple[str, ...]:
        """Return the type that decides: the master alone."""
        del job
        return (names.MASTER,)
