"""TrainJobs and runtimes of the older shape for tests, each a small one with what the test changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainplane.api import document
from trainplane.api.legacy import v2alpha1

if TYPE_CHECKING:
    from trainplane.api.document import Document

Tree = dict[str, Any]

NAMESPACE = "team"
API = "kubeflow.org/v2alpha1"
RESOURCES = {"requests": {"cpu": "8", "nvidia.com/gpu": "4"}}
TRAINER = {"image": "my/trainer:1", "command": ["torchrun", "train.py"], "resourcesPerNode": RESOURCES}


def job(name: str = "job", *, meta: Tree | None = None, **spec: Any) -> Tree:
    """Return a TrainJob that says all itself, unless it is given a runtimeRef or other parts."""
    metadata = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "generation": 1, **(meta or {})}
    whole = {"numNodes": 2, "trainer": TRAINER, **spec}
    return {
        "apiVersion": API,
        "kind": "TrainJob",
        "metadata": metadata,
        "spec": {key: value for key, value in whole.items() if value is not None},
    }


def on_runtime(name: str = "job", *, meta: Tree | None = None, **ref: Any) -> Tree:
    """Return a TrainJob that names a runtime and nothing else."""
    return job(name, meta=meta, numNodes=None, trainer=None, runtimeRef={"name": "torch", **ref})


def runtime(name: str = "torch", *, kind: str = "ClusterTrainingRuntime", image: str = "img:1", **meta: Any) -> Tree:
    """Return a runtime with one step."""
    metadata: Tree = {"name": name, "uid": f"uid-{name}", "generation": 1, **meta}
    if kind == "TrainingRuntime":
        metadata["namespace"] = NAMESPACE
    step = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"template": {"spec": {"containers": [{"name": "node", "image": image}]}}},
        },
    }
    spec = {"mlPolicy": {"numNodes": 3, "torch": {}}, "template": {"spec": {"replicatedJobs": [step]}}}
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}


def read(tree: Tree) -> Document[v2alpha1.TrainJob]:
    """Return a TrainJob's document."""
    return document.read(tree, v2alpha1.TrainJob)
