"""PaddlePaddle: `python -m paddle.distributed.launch` on every node, told by variables what would be its options.

The runtime is labelled `trainer.kubeflow.org/framework: paddle`. mlPolicy has no field for Paddle, so Kueue counts the
job as PlainML's, which has the same pods.

The launcher begins the meeting on the node whose own address is that of the master. It would take the pod's IP for its
own, which is not the name that the others know the first node by; so each node is told its own name too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.render.plugin import Plugin
from trainplane.render.provenance import trainjob
from trainplane.render.rendezvous import append_env, open_port, rank, rendezvous_of
from trainplane.render.reserved import judge_reserved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.document import Document
    from trainplane.api.trainjob import TrainJob
    from trainplane.render.findings import Finding
    from trainplane.render.plan import Plan
    from trainplane.render.rendezvous import Rendezvous


class Paddle(Plugin):
    """Serves runtimes that are labelled as Paddle's."""

    name = "Paddle"

    def enforce(self, plan: Plan) -> None:
        """Set the launcher's variables and the master's port."""
        meeting = rendezvous_of(plan) if _is_meant(plan) else None
        if meeting is None:
            return
        append_env(
            meeting.container,
            {"name": names.PADDLE_JOB_ID, "value": plan.name},
            {"name": names.PADDLE_NNODES, "value": str(meeting.nodes)},
            {"name": names.PADDLE_MASTER, "value": meeting.address},
            rank(names.PADDLE_RANK),
            {"name": names.PADDLE_HOST, "value": _own_host(meeting)},
        )
        processes = plan.trainer.num_proc_per_node if plan.trainer else None
        if isinstance(processes, int):
            variable = {"name": names.PADDLE_NPROC_PER_NODE, "value": str(processes)}
            meeting.container.set_env(variable, origin=trainjob("spec.trainer.numProcPerNode"))
        open_port(meeting.container, meeting.port)

    def validate(self, plan: Plan, old: Document[TrainJob] | None) -> Iterator[Finding]:
        """Refuse variables that are Paddle's own."""
        del old
        if _is_meant(plan):
            yield from judge_reserved(plan, names.PADDLE_RESERVED, self.name)


def _is_meant(plan: Plan) -> bool:
    return plan.framework == names.FRAMEWORK_PADDLE


def _own_host(meeting: Rendezvous) -> str:
    """Return a node's own address, as the first node's is written: it differs in the rank alone."""
    name, _, subdomain = meeting.host.partition(".")
    return f"{name.removesuffix('0')}$({names.PADDLE_RANK}).{subdomain}"
