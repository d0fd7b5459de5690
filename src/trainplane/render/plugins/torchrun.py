"""Torchrun: a TrainJob that only gives arguments is run by torchrun, and nodes know the first one by its common names.

Arguments without a command are those of torchrun: `args: [train.py, --epochs=3]` is a whole training. PET_ variables
(`torch`) are torchrun's options, so it needs no others. What anybody gave as a command stays: the TrainJob, the
runtime, also one who wrote `command: []` and means the image's own.

MASTER_ADDR and MASTER_PORT are for whoever starts processes otherwise: torch.distributed reads them, torchrun does not,
and gives its children its own. Elastic nodes choose another first node at each meeting, and torchrun tells its children
which; the variables say where they meet.

The reference does neither. A plugin of its own, so that a JobSet made without it can be told for what it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.render.plugin import Plugin
from trainplane.render.rendezvous import rendezvous_of

if TYPE_CHECKING:
    from trainplane.render.plan import Plan

COMMAND: Final = ["torchrun"]


class Torchrun(Plugin):
    """Serves runtimes with `mlPolicy.torch`."""

    name = "Torchrun"

    def enforce(self, plan: Plan) -> None:
        """Set the command where nobody did, and the variables that nobody set."""
        meeting = rendezvous_of(plan) if plan.policy and plan.policy.torch else None
        if meeting is None:
            return
        container = meeting.container
        trainer = trees.get(plan.job.tree, "spec", "trainer") or {}
        if trainer.get("args") and trainer.get("command") is None and not container.command:
            container.set("command", COMMAND)
        said = {entry.get("name") for entry in container.env}
        values = {names.MASTER_ADDR: meeting.host, names.MASTER_PORT: str(meeting.port)}
        container.set_env(*({"name": name, "value": value} for name, value in values.items() if name not in said))
