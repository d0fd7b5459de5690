"""JAX: one process on every node, told by JAX_ variables how many there are, which it is, and where the first one is.

The program calls `jax.distributed.initialize()` and passes them on. A TrainJob may set any of them itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.render.plugin import Plugin
from trainplane.render.rendezvous import open_port, rank, rendezvous_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.document import Document
    from trainplane.api.trainjob import TrainJob
    from trainplane.render.plan import Plan


class JAX(Plugin):
    """Serves runtimes with `mlPolicy.jax`."""

    name = "JAX"

    def enforce(self, plan: Plan) -> None:
        """Set the number of nodes, JAX's variables and its port."""
        if not _is_meant(plan):
            return
        plan.count_nodes()
        meeting = rendezvous_of(plan)
        if meeting is None:
            return
        variables = (
            {"name": names.JAX_NUM_PROCESSES, "value": str(meeting.nodes)},
            rank(names.JAX_PROCESS_ID),
            {"name": names.JAX_COORDINATOR_ADDRESS, "value": meeting.address},
        )
        meeting.container.set_env(*plan.env_not_overridden(variables))
        open_port(meeting.container, meeting.port)

    def validate(self, plan: Plan, old: Document[TrainJob] | None) -> Iterator[str]:
        """Warn of a number of processes: JAX drives all devices of a node from one."""
        del old
        processes = plan.trainer.num_proc_per_node if plan.trainer else None
        if _is_meant(plan) and isinstance(processes, int) and processes > 1:
            yield (
                f"spec.trainer.numProcPerNode: {processes} has no effect with JAX, which drives all devices of a node "
                "from one process: leave it out"
            )


def _is_meant(plan: Plan) -> bool:
    return plan.policy is not None and plan.policy.jax is not None
