"""What makes a difference in a Torch job's variables and command one that we declare.

Variables and processes of both sides are worked out from the case anew: what is neither explains nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.conformance import context as it
from tests.conformance import ports, variables
from tests.conformance.compare import ABSENT, MASTER
from trainplane.api.quantity import Quantity

if TYPE_CHECKING:
    from tests.conformance.cases import Case, Tree
    from tests.conformance.compare import Difference

_GPU = re.compile(r"gpu|/mig-", re.IGNORECASE)
_DEVICE = re.compile(r"/(tpu|neuron\w*|gaudi)$")


# -- the case ---------------------------------------------------------------------------------------------------------


def _processes(case: Case) -> tuple[str, str]:
    """Return the processes on a node: what the reference counts, and what we do."""
    said = it.trainer(case).get("numProcPerNode")
    if said is not None:
        return str(said), str(said)
    given, asked = it.node(case).get("resources", {}), it.trainer(case).get("resourcesPerNode")
    merged = {side: {**given.get(side, {}), **(asked or {}).get(side, {})} for side in ("requests", "limits")}
    claims = given.get("claims") or (asked or {}).get("claims")
    theirs = given if asked is None else asked
    is_theirs = _counted(theirs, re.compile("gpu", re.IGNORECASE)) > 0
    devices = _counted(merged, _DEVICE) or ("auto" if claims else _cpus(merged))
    return "auto" if is_theirs else str(_cpus(theirs)), "auto" if _counted(merged, _GPU) else str(devices)


def _counted(resources: Tree, named: re.Pattern[str]) -> int:
    sides = [resources.get(side, {}) for side in ("requests", "limits")]
    totals = [sum(Quantity.of(one).value() for name, one in side.items() if named.search(name)) for side in sides]
    return totals[0] or totals[1]


def _cpus(resources: Tree) -> int:
    amounts = [Quantity.of(resources.get(side, {}).get("cpu", 0)).value() for side in ("requests", "limits")]
    return max(1, amounts[0] or amounts[1])


def _variables(case: Case) -> dict[str, Tree]:
    """Return the variables of ours in a node's container; torch.distributed's own, unless the runtime gives them."""
    values = {
        "PET_NNODES": str(it.nodes(case)),
        "PET_NPROC_PER_NODE": _processes(case)[1],
        "PET_MASTER_ADDR": it.address(case),
        "PET_MASTER_PORT": str(ports.USUAL),
    }
    given = {entry["name"] for entry in (*it.node(case).get("env", ()), *it.trainer(case).get("env", ()))}
    values |= {name: values[f"PET_{name}"] for name in MASTER if name not in given}
    return variables.given(values, rank="PET_NODE_RANK")


# -- predicates -------------------------------------------------------------------------------------------------------


def is_torch_without_trainer(found: Difference) -> bool:
    """Match the variables and the port of a Torch job without `spec.trainer`, and their ownership."""
    if not (it.job(found.case) and it.is_torch(found.case) and not it.has_trainer(found.case)):
        return False
    return ports.adds(found) or variables.adds(found, _variables(found.case))


def knows_master(found: Difference) -> bool:
    """Match the first node's address by torch.distributed's own names, which nobody gave."""
    if not (it.is_torch(found.case) and found.reference == ABSENT and it.in_node(found, "env")):
        return False
    name = it.entry(found, "env")
    wanted = _variables(found.case).get(name)
    return name in MASTER and wanted is not None and (it.is_owned(found) or bool(found.ours == wanted))


def runs_torchrun(found: Difference) -> bool:
    """Match the command of a Torch job that gives arguments, where nobody gave a command."""
    if not (it.is_torch(found.case) and found.reference == ABSENT and it.in_node(found, "command")):
        return False
    trainer = it.trainer(found.case)
    is_asked = trainer.get("args") and "command" not in trainer and "command" not in it.node(found.case)
    return bool(is_asked) and (it.is_owned(found) or found.ours == ["torchrun"])


def counts_accelerators(found: Difference) -> bool:
    """Match our `auto`, or number of devices, where the reference counted CPUs although the pod has an accelerator."""
    is_value = it.of_container(found, "env.value") and it.entry(found, "env") == "PET_NPROC_PER_NODE"
    return is_value and it.is_torch(found.case) and (found.reference, found.ours) == _processes(found.case)


def follows_subdomain(found: Difference) -> bool:
    """Match the address of the first node in the runtime's subdomain."""
    is_value = it.of_container(found, "env.value") and it.entry(found, "env") == "PET_MASTER_ADDR"
    if not (is_value and it.is_torch(found.case)):
        return False
    name = it.job(found.case)["metadata"]["name"]
    theirs, ours = f"{name}-node-0-0.{name}", it.address(found.case)
    return theirs != ours and (found.reference, found.ours) == (theirs, ours)
