"""JAX: one process on every node, told by JAX_ variables how many there are, which it is, and where the first one is.

The program calls `jax.distributed.initialize()` and passes them on. A TrainJob may set any of them itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.render.meeting import meeting_of, open_port, rank
from trainplane.render.origin import trainjob
from trainplane.render.plugin import Plugin

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
        trainer, pods = plan.trainer, plan.trainer_set
        if pods and trainer and trainer.num_nodes is not None:
            pods.set_pods(trainer.num_nodes, origin=trainjob("spec.trainer.numNodes"))
        meeting = meeting_of(plan)
        if meeting is None:
            return
        variables = (
            {"name": names.JAX_NUM_PROCESSES, "value": str(meeting.nodes)},
            rank(names.JAX_PROCESS_ID),
            {"name": names.JAX_COORDINATOR_ADDRESS, "value": meeting.address},
        )
        said = {entry.get("name") for entry in trainer.env} if trainer else set()
        meeting.container.set_env(*(entry for entry in variables if entry["name"] not in said))
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
