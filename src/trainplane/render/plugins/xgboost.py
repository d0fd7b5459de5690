"""XGBoost: workers that a tracker on the first node brings together, told by DMLC_ variables where it is.

The program starts the tracker on the node whose DMLC_TASK_ID is 0, and a worker for each GPU of a node, or one. How
many nodes there are is settled by PlainML.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.render import resources
from trainplane.render.plugin import Plugin
from trainplane.render.rendezvous import open_port, rank, rendezvous_of
from trainplane.render.reserved import judge_reserved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.document import Document
    from trainplane.api.trainjob import TrainJob
    from trainplane.render.findings import Finding
    from trainplane.render.plan import Container, Plan


class XGBoost(Plugin):
    """Serves runtimes with `mlPolicy.xgboost`."""

    name = "XGBoost"

    def enforce(self, plan: Plan) -> None:
        """Set the tracker's address, the number of workers, and the port."""
        meeting = rendezvous_of(plan) if _is_meant(plan) else None
        if meeting is None:
            return
        workers = meeting.nodes * _workers_of_node(plan, meeting.container)
        meeting.container.set_env(
            {"name": names.XGBOOST_TRACKER_URI, "value": meeting.host},
            {"name": names.XGBOOST_TRACKER_PORT, "value": str(meeting.port)},
            rank(names.XGBOOST_TASK_ID),
            {"name": names.XGBOOST_NUM_WORKER, "value": str(workers)},
        )
        open_port(meeting.container, meeting.port)

    def validate(self, plan: Plan, old: Document[TrainJob] | None) -> Iterator[Finding]:
        """Refuse variables that are XGBoost's own."""
        del old
        if _is_meant(plan):
            yield from judge_reserved(plan, names.XGBOOST_RESERVED, self.name)


def _is_meant(plan: Plan) -> bool:
    return plan.policy is not None and plan.policy.xgboost is not None


def _workers_of_node(plan: Plan, container: Container) -> int:
    """Return how many workers each node runs: as the TrainJob says, else one for each GPU, else one."""
    said = plan.trainer.num_proc_per_node if plan.trainer else None
    return said if isinstance(said, int) and said > 0 else max(1, resources.gpus(container))
