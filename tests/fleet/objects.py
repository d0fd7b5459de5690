"""Objects of the fleet's tests: TrainJobs, runtimes, queues and what Kueue has beside them."""

from __future__ import annotations

from typing import Any

from lab import kwok

Tree = dict[str, Any]

TRAINER = "trainer.kubeflow.org/v1alpha1"
KUEUE = "kueue.x-k8s.io/v1beta2"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
STEP_LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
KUEUE_MANAGER = "kueue.x-k8s.io/manager"

FLAVOR = "default"
"""The one flavor of every ClusterQueue here; it is on all clusters and has no labels."""
QUEUE = "queue"
"""The LocalQueue of every team, in its own namespace."""
RUNTIME = "quick"
"""A ClusterTrainingRuntime on all clusters, equal on all: its pods end as soon as they run."""
HELD = "held"
"""Another: its pods run until the test ends them (`Team.end`), or for a day."""
QUOTA = {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "8"}
"""What a ClusterQueue has when a test does not choose."""

REAL = {"key": "lab.trainplane.dev/real", "operator": "Exists", "effect": "NoSchedule"}
"""The toleration of pods that really run: everybody else's, which have no program, are kept off the node with pods."""


def runtime(name: str, *, lasts: str | None = None, image: str = "registry.invalid/train:1", **template: Any) -> Tree:
    """Return a torch runtime for the whole cluster; `lasts` is how long its simulated pods run."""
    container = {"name": "node", "image": image, "command": ["train"]}
    pods: Tree = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    if lasts:
        pods["metadata"] = {"annotations": {kwok.LASTS: lasts}}
    job = {
        "name": "node",
        "template": {
            "metadata": {"labels": {STEP_LABEL: "trainer"}},
            "spec": {"backoffLimit": 0, "template": pods},
        },
    }
    return {
        "apiVersion": TRAINER,
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {"numProcPerNode": "auto"}},
            "template": {"spec": {"replicatedJobs": [job], **template}},
        },
    }


def namespaced(runtime: Tree, namespace: str) -> Tree:
    """Return a runtime as a TrainingRuntime of one namespace."""
    return runtime | {"kind": "TrainingRuntime", "metadata": {**runtime["metadata"], "namespace": namespace}}


def train_job(
    name: str,
    namespace: str,
    *,
    runtime: str = RUNTIME,
    kind: str = "ClusterTrainingRuntime",
    queue: str | None = QUEUE,
    nodes: int = 1,
    cpu: str = "1",
    gpus: int = 0,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Tree:
    """Return a TrainJob for a LocalQueue; `cpu` and `gpus` are for each node, `spec` adds to its spec."""
    requests = {"cpu": cpu, "memory": "1Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    all_labels = ({QUEUE_LABEL: queue} if queue else {}) | (labels or {})
    return {
        "apiVersion": TRAINER,
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": namespace, "labels": all_labels, "annotations": annotations or {}},
        "spec": {
            "runtimeRef": {"kind": kind, "name": runtime},
            "trainer": {"numNodes": nodes, "resourcesPerNode": {"requests": requests}},
            **spec,
        },
    }


def flavor(name: str = FLAVOR, **spec: Any) -> Tree:
    """Return a ResourceFlavor."""
    return {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def cluster_queue(
    name: str,
    quota: dict[str, str] | None = None,
    *,
    checks: tuple[str, ...] = (),
    flavor: str = FLAVOR,
    **spec: Any,
) -> Tree:
    """Return a ClusterQueue for one namespace, that of its own name; `checks` are admission checks, `spec` adds."""
    amounts = {**QUOTA, **(quota or {})}
    resources = [{"name": resource, "nominalQuota": amount} for resource, amount in amounts.items()]
    group = {"coveredResources": list(amounts), "flavors": [{"name": flavor, "resources": resources}]}
    tree: Tree = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
        "resourceGroups": [group],
        **spec,
    }
    if checks:
        tree["admissionChecksStrategy"] = {"admissionChecks": [{"name": check} for check in checks]}
    return {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": tree}


def local_queue(namespace: str, *, name: str = QUEUE, cluster_queue: str | None = None) -> Tree:
    """Return a LocalQueue that leads to the ClusterQueue of the namespace's name."""
    meta = {"name": name, "namespace": namespace}
    spec = {"clusterQueue": cluster_queue or namespace}
    return {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": meta, "spec": spec}


def priority_class(name: str, value: int) -> Tree:
    """Return a WorkloadPriorityClass."""
    meta = {"name": name}
    return {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": meta, "value": value}


def namespace(name: str) -> Tree:
    """Return a Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
