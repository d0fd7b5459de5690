"""PlainML: trainings whose framework needs nothing from us but pods.

For runtimes without a policy, and for frameworks whose plugin leaves the number of nodes to us: XGBoost, Flux, and
those of other packages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.render.plugin import Plugin

if TYPE_CHECKING:
    from trainplane.render.plan import Plan


class PlainML(Plugin):
    """Lets the TrainJob say how many nodes train."""

    name = "PlainML"

    def enforce(self, plan: Plan) -> None:
        """Set the number of training pods to spec.trainer.numNodes."""
        policy = plan.policy
        if policy is not None and (policy.torch or policy.mpi or policy.jax):
            return
        plan.count_nodes()
