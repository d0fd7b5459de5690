"""The shipped runtimes that older jobs can run on, as far as rendering looks at them; a test compares the files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api.legacy import kinds

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

FRAMEWORKS: Final = {
    kinds.PYTORCH.name: "torch",
    kinds.TENSORFLOW.name: names.FRAMEWORK_TENSORFLOW,
    kinds.XGBOOST.name: "xgboost",
    kinds.PADDLE.name: names.FRAMEWORK_PADDLE,
    kinds.JAX.name: "jax",
    kinds.MPI.name: "mpi",
}
"""What the label of a runtime calls the framework of a kind."""
PATIENT: Final = frozenset({"xgboost", names.FRAMEWORK_PADDLE})
"""Frameworks whose nodes may start before their peers have names: one of them that fails is tried once more."""
MAX_RESTARTS: Final = 10
"""How often the operator restarts a TrainJob of a shipped runtime after a fault."""
_DISRUPTED: Final = {"type": "DisruptionTarget", "status": "True"}


def shipped_name(framework: str) -> str:
    """Name the shipped runtime of a framework."""
    return f"{framework}-distributed"


def shipped_runtime(framework: str) -> Tree:
    """Return the shipped runtime of a framework; its image is left out, for each TrainJob that is moved brings one."""
    labelled = framework in {names.FRAMEWORK_TENSORFLOW, names.FRAMEWORK_PADDLE}
    policy: Tree = {"numNodes": 1} if labelled else {"numNodes": 1, framework: {}}
    restart = {
        "name": "disrupted",
        "action": "RestartJobSetAndIgnoreMaxRestarts",
        "onJobFailureReasons": ["PodFailurePolicy"],
        "onJobFailureMessagePatterns": ["has condition DisruptionTarget"],
    }
    container = {"name": names.CONTAINER_NODE, "terminationMessagePolicy": "FallbackToLogsOnError"}
    job = {
        "backoffLimit": int(framework in PATIENT),
        "podFailurePolicy": {"rules": [{"action": "FailJob", "onPodConditions": [_DISRUPTED]}]},
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    template = {"metadata": {"labels": {names.LABEL_ANCESTOR: names.ANCESTOR_TRAINER}}, "spec": job}
    node = {"name": names.JOB_NODE, "groupName": "default", "replicas": 1, "template": template}
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.CLUSTER_TRAINING_RUNTIME,
        "metadata": {"name": shipped_name(framework), "labels": {names.LABEL_FRAMEWORK: framework}},
        "spec": {
            "mlPolicy": policy,
            "runPolicy": run_policy(MAX_RESTARTS),
            "template": {"spec": {"failurePolicy": {"rules": [restart]}, "replicatedJobs": [node]}},
        },
    }


def run_policy(max_restarts: int) -> Tree:
    """Return the runPolicy of a runtime that allows this many restarts after faults."""
    return {"failurePolicy": {"maxRestarts": max_restarts}}
