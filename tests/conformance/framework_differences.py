"""Differences that we want in JAX and XGBoost. Rows of `Declared`: id, what, reason, predicate.

Each predicate asks for the cause in the case's documents, not only for the place, or it would hide faults.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.conformance import context as it
from tests.conformance import ports, variables, warned
from tests.conformance.compare import ABSENT
from trainplane.api.quantity import Quantity

if TYPE_CHECKING:
    from tests.conformance.cases import Case, Tree
    from tests.conformance.compare import Difference

_PORT = "29500"
_MEETING = ("jax", "xgboost")
_ADDRESSES = ("JAX_COORDINATOR_ADDRESS", "DMLC_TRACKER_URI")


def _framework(case: Case) -> str:
    policy = it.runtime(case).get("spec", {}).get("mlPolicy") or {}
    return next((name for name in _MEETING if name in policy), "")


def is_of_framework(case: Case) -> bool:
    """Return whether a case is about a runtime of JAX or XGBoost."""
    return bool(_framework(case))


# -- JAX and XGBoost --------------------------------------------------------------------------------------------------


def has_no_trainer(found: Difference) -> bool:
    """Match the variables and the port of a job without `spec.trainer`, and their ownership."""
    if it.has_trainer(found.case):
        return False
    return ports.adds(found) or variables.adds(found, _variables(found.case))


def _variables(case: Case) -> dict[str, Tree]:
    """Return the variables of ours in a node's container."""
    address, port = it.address(case), str(ports.number(case))
    if _framework(case) == "jax":
        values = {"JAX_COORDINATOR_ADDRESS": f"{address}:{port}", "JAX_NUM_PROCESSES": str(it.nodes(case))}
        return variables.given(values, rank="JAX_PROCESS_ID")
    workers = {"DMLC_NUM_WORKER": str(it.nodes(case) * _workers(case))}
    return variables.given(workers | {"DMLC_TRACKER_URI": address, "DMLC_TRACKER_PORT": port}, rank="DMLC_TASK_ID")


def follows_first_node(found: Difference) -> bool:
    """Match the address of the first node by the name of its job, and in the runtime's subdomain."""
    if not (it.of_container(found, "env.value") and it.entry(found, "env") in _ADDRESSES):
        return False
    name = it.job(found.case)["metadata"]["name"]
    spec = it.runtime(found.case)["spec"]["template"]["spec"]
    subdomain = spec.get("network", {}).get("subdomain", name)
    job = it.entry(found, "replicatedJobs")
    theirs, ours = f"{name}-node-0-0.{name}", f"{name}-{job}-0-0.{subdomain}"
    port = f":{_PORT}" if it.entry(found, "env") == "JAX_COORDINATOR_ADDRESS" else ""
    return theirs != ours and (found.reference, found.ours) == (f"{theirs}{port}", f"{ours}{port}")


def has_port_set(found: Difference) -> bool:
    """Match the port that the runtime's annotation sets, wherever it stands."""
    number = str(ports.number(found.case))
    if number == _PORT or _framework(found.case) not in _MEETING:
        return False
    if it.is_owned(found):
        theirs, ours = (f'k:{{"containerPort":{port},' in found.path for port in (_PORT, number))
        return (theirs and found.ours == ABSENT) or (ours and found.reference == ABSENT)
    if it.of_container(found, "ports.containerPort"):
        return (str(found.reference), str(found.ours)) == (_PORT, number)
    is_variable = it.of_container(found, "env.value") and it.entry(found, "env").startswith(("JAX_", "DMLC_"))
    return is_variable and found.ours == re.sub(rf"\b{_PORT}$", number, str(found.reference)) != found.reference


def counts_workers(found: Difference) -> bool:
    """Match the number of workers where the TrainJob says it, or where GPUs are not plainly those of the TrainJob."""
    if not (it.of_container(found, "env.value") and it.entry(found, "env") == "DMLC_NUM_WORKER"):
        return False
    nodes = it.nodes(found.case)
    asked = it.trainer(found.case).get("resourcesPerNode")
    theirs = _gpus(it.node(found.case).get("resources", {}) if asked is None else asked, r"gpu") or 1
    return (found.reference, found.ours) == (str(nodes * theirs), str(nodes * _workers(found.case)))


def _workers(case: Case) -> int:
    """Return how many workers a node has: as the TrainJob says, else one for each GPU or slice of one."""
    given, asked = it.node(case).get("resources", {}), it.trainer(case).get("resourcesPerNode") or {}
    merged = {side: {**given.get(side, {}), **asked.get(side, {})} for side in ("requests", "limits")}
    return int(it.trainer(case).get("numProcPerNode") or _gpus(merged, r"/(gpu$|mig-)") or 1)


def _gpus(resources: Tree, named: str) -> int:
    sides = [resources.get(side, {}) for side in ("requests", "limits")]
    totals = [sum(Quantity.of(one).value() for name, one in side.items() if re.search(named, name)) for side in sides]
    return totals[0] or totals[1]


ROWS = (
    (
        "variables-without-trainer",
        "`JAX_*` and `DMLC_*` variables and the port also without `spec.trainer`",
        "a runtime's nodes belong together whatever the TrainJob adds (§11.14)",
        has_no_trainer,
    ),
    (
        "first-node",
        "`JAX_COORDINATOR_ADDRESS` and `DMLC_TRACKER_URI` follow the trainer job's name and `network.subdomain`",
        "the reference's address does not resolve there (§11.16)",
        follows_first_node,
    ),
    (
        "port-set",
        "the runtime's annotation `trainer.kubeflow.org/port` sets the port at which nodes meet",
        "pods that share their node's network need another one each; the reference knows 29500 alone (§11.16)",
        has_port_set,
    ),
    (
        "xgboost-workers",
        "`DMLC_NUM_WORKER` counts slices of GPUs, a runtime's GPUs beside a TrainJob's CPUs, and `numProcPerNode`",
        "the reference does not see them, and the tracker would wait for other workers than there are (§11.15)",
        counts_workers,
    ),
    (
        "jax-processes",
        "a warning for `numProcPerNode` with JAX",
        "it has no effect: JAX drives all devices of a node from one process",
        warned.warns(warned.PROCESSES),
    ),
)
