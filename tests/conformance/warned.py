"""Causes of the warnings that are ours alone. A warning without its cause in the case is a fault, whatever it says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.conformance import context as it
from tests.conformance.cases import Change, Create, Remove

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conformance.cases import Tree
    from tests.conformance.compare import Difference

    Cause = tuple[str, Callable[[Difference], bool]]


def warns(*causes: Cause) -> Callable[[Difference], bool]:
    """Match warnings of which one has one of some causes, and each has a cause; the reference has those that it must.

    A cause is what the warning says, and a function that tells from the case if it is true.
    """

    def matches(found: Difference) -> bool:
        if (found.place, found.path) != ("verdict", "warned") or found.reference != _theirs(found):
            return False
        lines = found.message.splitlines()
        told = len(lines) == found.ours and all(_has_cause(line, found, ALL) for line in lines)
        return told and any(_has_cause(line, found, causes) for line in lines)

    return matches


def _has_cause(line: str, found: Difference, causes: tuple[Cause, ...]) -> bool:
    return any(re.search(saying, line) and is_true(found) for saying, is_true in causes)


def _theirs(found: Difference) -> int:
    """Return how many warnings the reference has: one, of a deprecated runtime of the cluster, at any edit too."""
    is_told = isinstance(found.step, Create) or it.kind(found.step) == "TrainJob"
    return int(is_told and _is_labelled(found) and _runtime_of(found)["kind"] == "ClusterTrainingRuntime")


def _runtime_of(found: Difference) -> Tree:
    """Return the runtime that a step writes, or that its TrainJob runs on."""
    document = found.step.document if isinstance(found.step, Create) else {}
    return document if str(document.get("kind", "")).endswith("TrainingRuntime") else it.runtime(found.case)


def _is_new_job(found: Difference) -> bool:
    return isinstance(found.step, Create) and it.kind(found.step) == "TrainJob"


# -- runtimes ---------------------------------------------------------------------------------------------------------


def _is_labelled(found: Difference) -> bool:
    labels = _runtime_of(found).get("metadata", {}).get("labels") or {}
    return bool(labels.get("trainer.kubeflow.org/support") == "deprecated")


def _is_deprecated(found: Difference) -> bool:
    """Tell if a deprecated runtime is created, or used by a TrainJob that is written otherwise than it was."""
    return _is_labelled(found) and (isinstance(found.step, Create) or _is_other_job(found))


def _is_other_job(found: Difference) -> bool:
    if not isinstance(found.step, Change) or found.step.kind != "TrainJob":
        return False
    was, is_now = (it.stored(found, before=before).get("spec") for before in (True, False))
    return bool(was != is_now)


def is_untold(found: Difference) -> bool:
    """Match the reference's warning of a deprecated runtime at an edit that leaves the spec of a TrainJob as it was."""
    is_edit = isinstance(found.step, Change) and found.step.kind == "TrainJob" and not _is_other_job(found)
    is_theirs = (found.place, found.path, found.reference, found.ours) == ("verdict", "warned", 1, 0)
    return is_theirs and is_edit and _theirs(found) == 1


def _becomes_wrong(found: Difference) -> bool:
    """Tell if an edit gives the job that trains another number of replicas than one."""
    if not (isinstance(found.step, Change) and isinstance(found.step.patch, dict)):
        return False
    jobs = it.merged(it.runtime(found.case), found.step.patch)["spec"]["template"]["spec"]["replicatedJobs"]
    many = any(it.ancestor(job) == "trainer" and job.get("replicas", 1) != 1 for job in jobs)
    return found.step.kind == "TrainingRuntime" and many


def _is_used(found: Difference) -> bool:
    """Tell if a runtime goes that an unfinished job began with."""
    on = it.runtime(found.case)
    gone = isinstance(found.step, Remove) and (found.step.kind, found.step.name) == (on["kind"], on["metadata"]["name"])
    begun = any(isinstance(step, Create) and it.kind(step) == "TrainJob" for step in it.before(found))
    return gone and begun and not it.has_reported(found, "Completed", "Failed")


# -- TrainJobs --------------------------------------------------------------------------------------------------------


def _has_vain_metadata(found: Difference) -> bool:
    """Tell if a patch in force has more of metadata than labels and annotations."""
    patched = [pod.get("metadata", {}) for entries in it.patches(found)[-1:] for _, pod in it.patched_pods(entries)]
    return any(metadata.keys() - {"labels", "annotations"} for metadata in patched)


def _has_nothing_to_run(found: Difference) -> bool:
    """Tell if neither a new TrainJob nor a container that it trains in says what to run; an image of its own may."""
    trainer, pods = it.trainer(found.case), it.pods(found.case)
    nodes = [one for name in it.training(found.case) for one in pods[name]["spec"]["containers"]]
    silent = any(one["name"] == "node" and not (one.get("command") or one.get("args")) for one in nodes)
    return _is_new_job(found) and silent and not any(trainer.get(key) for key in ("command", "args", "image"))


def _forges_kueue(found: Difference) -> bool:
    """Tell if a new TrainJob says something in Kueue's name."""
    entries = it.spec(found.case).get("runtimePatches", [])
    return _is_new_job(found) and any(one["manager"] == it.KUEUE and it.says_something(one) for one in entries)


def _has_idle_processes(found: Difference) -> bool:
    return "jax" in it.policy(found.case) and it.trainer(found.case).get("numProcPerNode", 1) > 1


# -- MPI --------------------------------------------------------------------------------------------------------------


def _launches(found: Difference) -> bool:
    return bool(it.policy(found.case).get("mpi", {}).get("runLauncherAsNode"))


def _needs_a_node_more(found: Difference) -> bool:
    has_both = {"node", "launcher"} <= it.pods(found.case).keys()
    return has_both and _launches(found) and it.trainer(found.case).get("numNodes") == 1


def _reaches_no_node(found: Difference) -> bool:
    return (
        "mpi" in it.policy(found.case) and not _launches(found) and bool(it.trainer(found.case).get("resourcesPerNode"))
    )


def _makes_launchers(found: Difference) -> bool:
    return "mpi" in it.policy(found.case) and it.policy(found.case).get("numNodes", 1) > 1


DEPRECATED: Cause = (r"is deprecated and will be removed", _is_deprecated)
WRONG: Cause = (r"no TrainJob can run so: spec\.template\.spec\.replicatedJobs\[\d+]\.replicas: ", _becomes_wrong)
VAIN: Cause = (r"spec\.runtimePatches.*metadata: only labels and annotations are taken", _has_vain_metadata)
USED: Cause = (r"this runtime is used by TrainJob", _is_used)
NOTHING: Cause = (r"spec\.trainer\.command: neither .* says what to run", _has_nothing_to_run)
FORGED: Cause = (r"spec\.runtimePatches\[manager=kueue[^]]*]: is left out", _forges_kueue)
PROCESSES: Cause = (r"spec\.trainer\.numProcPerNode: \d+ has no effect with JAX", _has_idle_processes)
MPI: tuple[Cause, ...] = (
    (r"spec\.trainer\.numNodes: 1 runs on two pods", _needs_a_node_more),
    (r"spec\.trainer\.resourcesPerNode: goes to the launcher and to no node", _reaches_no_node),
    (r"spec\.runtimeRef: .*numNodes \d+ makes that many launchers", _makes_launchers),
)
ALL: tuple[Cause, ...] = (DEPRECATED, WRONG, VAIN, USED, NOTHING, FORGED, PROCESSES, *MPI)
