"""Differences that we want in JAX, XGBoost and Flux. Rows of `Declared`: id, what, reason, predicate.

Each predicate asks for the cause in the case's documents, not only for the place, or it would hide faults.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

from tests.conformance import context as it
from tests.conformance.compare import ABSENT

if TYPE_CHECKING:
    from tests.conformance.cases import Case, Tree
    from tests.conformance.compare import Difference

_PORT = "29500"
_PREFIXES = {"jax": "JAX_", "xgboost": "DMLC_"}
_ADDRESSES = ("JAX_COORDINATOR_ADDRESS", "DMLC_TRACKER_URI")
_SCRIPTS = ("data.init.sh", "data.entrypoint.sh")


def _framework(case: Case) -> str:
    policy = it.runtime(case).get("spec", {}).get("mlPolicy") or {}
    return next((name for name in ("jax", "xgboost", "flux") if name in policy), "")


def is_of_framework(case: Case) -> bool:
    """Return whether a case is about a runtime of JAX, XGBoost or Flux."""
    return bool(_framework(case))


def _trainer(case: Case) -> Tree:
    trainer: Tree = it.job(case).get("spec", {}).get("trainer") or {}
    return trainer


def _number(found: Difference) -> str:
    """Return the port that the runtime's annotation sets, or the usual one."""
    annotations = it.runtime(found.case)["metadata"].get("annotations") or {}
    return str(annotations.get("trainer.kubeflow.org/port", _PORT))


# -- JAX and XGBoost --------------------------------------------------------------------------------------------------


def has_no_trainer(found: Difference) -> bool:
    """Match the variables and the port of a job without `spec.trainer`, and their ownership."""
    prefix = _PREFIXES.get(_framework(found.case))
    if prefix is None or "trainer" in it.job(found.case)["spec"] or found.reference != ABSENT:
        return False
    if it.is_owned(found):
        keys = [key for key in found.ours if key != "."]
        if found.path.endswith(".f:env"):
            return all(key.startswith(f'k:{{"name":"{prefix}') for key in keys)
        return found.path.endswith(".f:ports") and all(f'"containerPort":{_PORT}' in key for key in keys)
    if it.of_container(found, "env"):
        return all(entry["name"].startswith(prefix) for entry in found.ours)
    return it.of_container(found, "ports") and [str(entry["containerPort"]) for entry in found.ours] == [_PORT]


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
    number = _number(found)
    if number == _PORT or _framework(found.case) not in _PREFIXES:
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
    trainer = _trainer(found.case)
    nodes = int(trainer.get("numNodes", it.runtime(found.case)["spec"]["mlPolicy"].get("numNodes", 1)))
    said = trainer.get("numProcPerNode")
    if said is not None:
        return bool(found.ours == str(nodes * said))
    given: Tree = {}
    for one in (*it.containers(found.case), {"resources": trainer.get("resourcesPerNode", {})}):
        given |= one.get("resources", {}).get("limits", {})
    gpus = sum(int(amount) for name, amount in given.items() if re.search(r"/(gpu$|mig-)", name))
    return gpus > 0 and found.reference == str(nodes) and found.ours == str(nodes * gpus)


def warns_of_processes(found: Difference) -> bool:
    """Match our warning that JAX has one process on a node."""
    is_jax = _framework(found.case) == "jax" and _trainer(found.case).get("numProcPerNode", 1) > 1
    return is_jax and (found.place, found.path, found.ours) == ("verdict", "warned", True)


# -- Flux -------------------------------------------------------------------------------------------------------------


def _is_flux(found: Difference) -> bool:
    return _framework(found.case) == "flux"


def has_own_scripts(found: Difference) -> bool:
    """Match the text of a script that both have."""
    is_script = found.place.endswith("-flux-entrypoint") and found.path in _SCRIPTS
    return _is_flux(found) and is_script and ABSENT not in (found.reference, found.ours)


def has_drawn_key(found: Difference) -> bool:
    """Match another certificate of the same name, which no apply owns."""
    if not (_is_flux(found) and found.place.endswith("-flux-curve")):
        return False
    return found.path == "data.curve.cert" or (found.path == "owned" and found.ours == ABSENT)


def may_write_memory(found: Difference) -> bool:
    """Match the shared memory that the reference lets nobody write to."""
    is_memory = "shared-memory" in found.path or "/dev/shm" in found.path
    return _is_flux(found) and is_memory and found.path.endswith("readOnly") and found.ours == ABSENT


def keeps_words(found: Difference) -> bool:
    """Match the command as one line that a shell takes apart into its words, and the runtime's args in it."""
    if not (_is_flux(found) and it.within(found, "JobSet")):
        return False
    words = _words(found.case)
    if re.search(r"containers\.args$", it.plain(found.path)):
        return found.ours == ABSENT and "args" not in _trainer(found.case)
    if not found.path.endswith("command[2]"):
        return False
    return shlex.split(found.ours) == words and found.ours != found.reference


def _words(case: Case) -> list[Any]:
    node = next(one for one in it.containers(case) if one["name"] == "node")
    trainer = _trainer(case)
    both = [trainer.get(key, node.get(key)) or [] for key in ("command", "args")]
    return [word for words in both for word in words]


def is_made_at_all(found: Difference) -> bool:
    """Match the objects of a job for which the reference breaks: without a trainer, or without its number of nodes."""
    if not (_is_flux(found) and "numNodes" not in _trainer(found.case)):
        return False
    return (found.path, found.reference) == ("", ABSENT)


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
        warns_of_processes,
    ),
    (
        "flux-scripts",
        "the text of Flux's scripts",
        "they are our own: they honour the subdomain and any cluster domain, and share GPUs out among tasks",
        has_own_scripts,
    ),
    (
        "flux-drawn-key",
        "Flux's certificate is drawn at random, once, and no apply owns it",
        "the reference makes it from the TrainJob's uid, which whoever reads TrainJobs knows (§11.7)",
        has_drawn_key,
    ),
    (
        "flux-memory",
        "Flux's `/dev/shm` can be written to",
        "shared memory that is read-only is of no use (§11.7)",
        may_write_memory,
    ),
    (
        "flux-words",
        "Flux runs the command word for word, the runtime's `args` among them",
        "the reference joins the words with spaces and lets a shell split them anew",
        keeps_words,
    ),
    (
        "flux-without-nodes",
        "a Flux job without `spec.trainer.numNodes` runs on the runtime's nodes",
        "the reference breaks at every reconcile (§11.7)",
        is_made_at_all,
    ),
)
