"""The CEL rules of our schemas, in Python, by their text: objects are judged where there is no API server.

A test holds the tables against the schemas: a rule that is missing here fails it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.declaration import IMMUTABLE
from trainplane.api.runtime import PROCESS_WORDS
from trainplane.api.trainjob import FIXED_PARTS, RUNTIME_REF_FIXED, SAME_OR_TURNED, SAME_PARTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.api.tree import Tree

_FRAMEWORKS: Final = ("torch", "mpi", "jax", "xgboost", "flux")
_PROCESSES: Final = re.compile(r"[1-9][0-9]*")
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.+")
_MANAGERS: Final = (names.MANAGED_BY_TRAINER, names.MANAGED_BY_MULTIKUEUE)


def squeezed(rule: str) -> str:
    """Return a rule with every run of spaces as one, which is how the table has it."""
    return " ".join(rule.split())


def _is_ordered_once(spec: dict[str, Any]) -> bool:
    """Return whether jobs are put in order in one way at most; where there are none to look through, CEL fails."""
    if trees.get(spec, "startupPolicy", "startupPolicyOrder") != "InOrder":
        return True
    jobs = spec.get("replicatedJobs")
    return jobs is not None and not any(isinstance(job, dict) and "dependsOn" in job for job in jobs)


def _counts_processes(value: Any) -> bool:
    if isinstance(value, int):
        return value > 0
    return value in PROCESS_WORDS or bool(_PROCESSES.fullmatch(str(value)))


def _name(job: Tree) -> str:
    return str(trees.get(job, "metadata", "name") or "")


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
    "size(self) == 0": lambda text: not text,
    "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')": (lambda job: bool(_NAME.fullmatch(_name(job)))),
    "size(self.metadata.name) <= 63": lambda job: len(_name(job)) <= 63,
    "self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')": lambda uri: not uri or bool(_URI.fullmatch(uri)),
    f"self in {list(_MANAGERS)}": lambda manager: manager in _MANAGERS,
    "has(self.lastUpdatedTime)": lambda status: "lastUpdatedTime" in status,
}
"""What must hold of the value that a rule stands on."""


def _keeps_ref(ref: Tree, old: Tree) -> bool:
    moved = old.get("apiGroup") == names.LEGACY_GROUP and ref.get("apiGroup") == names.GROUP
    return ref == old or (moved and all(ref.get(key) == old.get(key) for key in ("kind", "name")))


def _keeps_parts(trainer: Tree, old: Tree) -> bool:
    processes = ("numProcPerNode" in trainer) == ("numProcPerNode" in old) or old.get("numProcPerNode") in PROCESS_WORDS
    return processes and all((part in trainer) == (part in old) for part in FIXED_PARTS)


def _keeps_processes(number: Any, old: Any) -> bool:
    turned = isinstance(number, int) and isinstance(old, str) and (str(number) == old or old in PROCESS_WORDS)
    return number == old or turned


RULES_OF_CHANGE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    squeezed(IMMUTABLE.rule): lambda value, old: bool(value == old),
    squeezed(RUNTIME_REF_FIXED.rule): _keeps_ref,
    squeezed(SAME_PARTS.rule): _keeps_parts,
    squeezed(SAME_OR_TURNED.rule): _keeps_processes,
}
"""What must hold of a value and of what is stored in its place. Where there is neither, such a rule does not run."""
