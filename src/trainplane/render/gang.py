"""The gang: the pods of a TrainJob that are of use only together, and what they need.

A scheduler that starts all of a group or none must not wait for pods which cannot be there yet: JobSet makes those of a
job that `dependsOn` others only when the others are complete, or ready. So the gang is

- the pods that train, and those of other jobs that begin when they do;
- or, if what trains waits until other jobs are ready (the launcher of MPI, for its nodes), those others;
- never initializers, nor the data cache, which is there before.

Everyone else is scheduled alone. A group that is larger than this waits for itself for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.render.demand import Amounts, add, pod_requests

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.render.plan import Plan, PodSet

_INITIALIZERS: Final = frozenset({names.ANCESTOR_DATASET, names.ANCESTOR_MODEL, names.ANCESTOR_CACHE})
_READY: Final = "Ready"
_IN_ORDER: Final = "InOrder"

Gate = frozenset[tuple[str, str]]
"""What a job waits for: names of other jobs, and whether until they are Ready or Complete."""


@dataclass(frozen=True, slots=True)
class Gang:
    """Pods that start together or not at all."""

    members: tuple[PodSet, ...]

    @property
    def size(self) -> int:
        """How many pods they are."""
        return sum(pods.replicas * pods.count for pods in self.members)

    def resources(self) -> Tree:
        """Return what all of them request together, as the API server writes it."""
        total: Amounts = {}
        for pods in self.members:
            add(total, pod_requests(pods.pod_spec), times=pods.replicas * pods.count)
        return {name: str(total[name]) for name in sorted(total)}


def gang_of(plan: Plan) -> Gang:
    """Return the gang of a TrainJob. Read it when counts are settled."""
    candidates = [pods for pods in plan.pod_sets if pods.ancestor not in _INITIALIZERS]
    if not candidates:
        return Gang(())
    gates = _gates(plan)
    known = {pods.name for pods in candidates}
    gate = gates[(plan.trainer_set or candidates[0]).name]
    for _ in gates:  # each step leads to an earlier job, unless two jobs share a name
        ready = [name for name, status in gate if status == _READY and name in known]
        if not ready:
            break
        gate = gates[min(ready)]
    return Gang(tuple(pods for pods in candidates if gates[pods.name] == gate))


def _gates(plan: Plan) -> dict[str, Gate]:
    in_order = plan.template.get("spec", "startupPolicy", "startupPolicyOrder") == _IN_ORDER
    gates: dict[str, Gate] = {}
    before: PodSet | None = None
    for pods in plan.pod_sets:
        waits = {(one.get("name", ""), one.get("status", "")) for one in pods.get("dependsOn") or ()}
        if in_order and before is not None:
            waits.add((before.name, _READY))
        gates[pods.name] = frozenset(wait for wait in waits if wait[0] in gates)
        before = pods
    return gates
