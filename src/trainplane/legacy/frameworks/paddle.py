"""PaddleJob: where paddle.distributed.launch meets, and what each pod is in parameter server mode.

Pods meet at master 0, or at worker 0 of a job without masters. That pod cannot look up its own Service before it is
ready, so it is told its own address instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api.legacy import names
from trainplane.legacy.frameworks.framework import UNBUFFERED, Framework, variable
from trainplane.legacy.job import Member

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.legacy.decision import Settings
    from trainplane.legacy.job import Job

_OWN_ADDRESS: Final = "POD_IP_DUMMY"


class Paddle(Framework):
    """Serves PaddleJobs."""

    def variables(self, job: Job, member: Member, settings: Settings) -> list[Tree]:
        """Return the job's name, how many there are, and where they meet."""
        del settings
        found = [UNBUFFERED, variable("PADDLE_JOB_ID", job.name), variable("PADDLE_NNODES", job.total)]
        meeting = Member(names.MASTER if names.MASTER in job.replicas else names.WORKER, 0)
        port = job.port(meeting.type)
        if member == meeting:
            found.append({"name": _OWN_ADDRESS, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}})
            found.append(variable("PADDLE_MASTER", f"$({_OWN_ADDRESS}):{port}"))
        else:
            found.append(variable("PADDLE_MASTER", f"{job.pod_name(*meeting)}:{port}"))
        if names.MASTER in job.replicas:
            part = "PADDLE_SERVER_NUM" if member.type == names.MASTER else "PADDLE_TRAINER_NUM"
            found.append(variable(part, 1))
        return found
