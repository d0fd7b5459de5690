"""How many ranks of torch a node runs on this machine.

Where nobody says how many, torch gets one for each processor that a node asks for. A cluster has nodes with a hundred;
here they would be a hundred processes on a few processors, so a node runs one for each that there is, at most. A number
of processes that somebody did say stands.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.client.backends.local import machine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.api.tree import Tree

_COUNTED: Final = frozenset({None, "auto", "cpu"})
"""What a runtime says where processes are counted by processors."""
_LONGEST: Final = 9
"""Digits of a number that is worth reading."""


def processors() -> int:
    """Return how many processors there are for a job."""
    return len(machine.processors()) or os.cpu_count() or 1


def are_counted(job: Tree, runtime: Tree) -> bool:
    """Return whether nobody says how many processes a node runs."""
    said = trees.get(job, "spec", "trainer", "numProcPerNode")
    return said is None and trees.get(runtime, "spec", "mlPolicy", "torch", "numProcPerNode") in _COUNTED


def beyond(value: str | None, there: int) -> bool:
    """Return whether a value of torch's variable is more processes than there are processors."""
    return value is not None and value.isdecimal() and (len(value) > _LONGEST or int(value) > there)


def bounded(variables: Mapping[str, str], there: int) -> dict[str, str]:
    """Return variables with no more processes than processors."""
    over = beyond(variables.get(names.TORCH_NPROC_PER_NODE), there)
    return {**variables, **({names.TORCH_NPROC_PER_NODE: str(there)} if over else {})}
