"""The CEL rules of the runtimes' schemas, in Python, by their text: a file is judged where there is no API server.

Rules that compare an object with what it was before have nothing to say about a file. A test holds this table against
the schemas: a rule that is missing here fails it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import tree as trees

if TYPE_CHECKING:
    from collections.abc import Callable

_FRAMEWORKS: Final = ("torch", "mpi", "jax", "xgboost", "flux")
_PROCESSES: Final = re.compile(r"[1-9][0-9]*")


def squeezed(rule: str) -> str:
    """Return a rule with every run of spaces as one, which is how the table has it."""
    return " ".join(rule.split())


def _is_ordered_once(spec: dict[str, Any]) -> bool:
    in_order = trees.get(spec, "startupPolicy", "startupPolicyOrder") == "InOrder"
    jobs = spec.get("replicatedJobs") or ()
    return not (in_order and any(isinstance(job, dict) and "dependsOn" in job for job in jobs))


def _counts_processes(value: Any) -> bool:
    if isinstance(value, int):
        return value > 0
    return value in {"auto", "cpu", "gpu"} or bool(_PROCESSES.fullmatch(str(value)))


RULES: Final[dict[str, Callable[[Any], bool]]] = {
    "[has(self.torch), has(self.mpi), has(self.jax), has(self.xgboost),has(self.flux)].filter(x, x).size() <= 1": (
        lambda policy: sum(name in policy for name in _FRAMEWORKS) <= 1
    ),
    "!(has(self.numNodes) && (has(self.torch) && has(self.torch.elasticPolicy)))": (
        lambda policy: "numNodes" not in policy or trees.get(policy, "torch", "elasticPolicy") is None
    ),
    "!self.exists(c, c == 'node')": lambda containers: "node" not in containers,
    "type(self) == int ? self > 0 : (self in ['auto', 'cpu', 'gpu'] || string(self).matches('^[1-9][0-9]*$'))": (
        _counts_processes
    ),
    "self >= 1": lambda value: bool(value >= 1),
    "!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder' "
    "&& self.replicatedJobs.exists(x, has(x.dependsOn)))": _is_ordered_once,
    "self.templates.all(t, !has(t.metadata.namespace) || size(t.metadata.namespace) == 0)": (
        lambda policy: not any(trees.get(one, "metadata", "namespace") for one in policy.get("templates") or ())
    ),
}
"""What must hold of the value that a rule stands on."""
