"""Documents as an API server has them, for tests of what is read from them."""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]

NAMESPACE = "team"
CREATED = "2026-11-15T05:00:00Z"


def at(second: int, minute: int = 0) -> str:
    """Return a time after the TrainJob was created."""
    return f"2026-11-15T05:{minute:02d}:{second:02d}Z"


def train_job(name: str = "a", *, nodes: int | None = None, conditions: Any = (), **others: Any) -> Tree:
    spec: Tree = {
        "runtimeRef": {"name": "torch-distributed", "kind": "ClusterTrainingRuntime"},
        **others.pop("spec", {}),
    }
    if nodes is not None:
        spec["trainer"] = {**spec.get("trainer", {}), "numNodes": nodes}
    status: Tree = {"conditions": list(conditions)} if conditions else {}
    if jobs := others.pop("jobs", None):
        status["jobsStatus"] = jobs
    metadata = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "creationTimestamp": CREATED}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {**metadata, **others.pop("metadata", {})},
        "spec": spec,
        "status": {**status, **others.pop("status", {})},
    }


def condition(kind: str, reason: str = "Because", message: str = "", *, status: str = "True") -> Tree:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at(59)}


def pod(
    index: int = 0,
    phase: str = "Running",
    *,
    role: str = "node",
    job: str = "a",
    job_index: int = 0,
    made: str = CREATED,
    suffix: str = "abcde",
    state: Tree | None = None,
    last: Tree | None = None,
    restarts: int = 0,
    env: Tree | None = None,
    limits: Tree | None = None,
    labels: Tree | None = None,
    **others: Any,
) -> Tree:
    """Return a pod of a TrainJob; `state` and `last` are those of its container."""
    name = f"{job}-{role}-{job_index}-{index}-{suffix}"
    container_name = role if role.endswith("initializer") else "node"
    container: Tree = {"name": container_name, "image": "image:1"}
    if env:
        container["env"] = [{"name": key, "value": value} for key, value in env.items()]
    if limits:
        container["resources"] = {"limits": limits}
    if state is None:
        state = {"running": {"startedAt": made}} if phase == "Running" else {}
    if phase == "Succeeded":
        state = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": at(50)}}
    status: Tree = {"phase": phase, **others.pop("status", {})}
    if state or last:
        status["containerStatuses"] = [
            {"name": container_name, "restartCount": restarts, "state": state, "lastState": last or {}}
        ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"uid-{name}",
            "creationTimestamp": made,
            "labels": {
                "jobset.sigs.k8s.io/jobset-name": job,
                "jobset.sigs.k8s.io/replicatedjob-name": role,
                "jobset.sigs.k8s.io/job-index": str(job_index),
                **(labels or {}),
            },
            "annotations": {"batch.kubernetes.io/job-completion-index": str(index), **others.pop("annotations", {})},
        },
        "spec": {"containers": [container], **others.pop("spec", {})},
        "status": status,
    }


def ended(code: int, *, second: int = 30, reason: str = "Error", message: str | None = None) -> Tree:
    """Return the state of a container that ended."""
    terminated: Tree = {"exitCode": code, "reason": reason, "finishedAt": at(second)}
    return {"terminated": terminated | ({"message": message} if message else {})}


def waiting(reason: str, message: str = "") -> Tree:
    return {"waiting": {"reason": reason, "message": message}}


def event(kind: str, name: str, reason: str, message: str = "it happened", *, second: int = 10, **others: Any) -> Tree:
    return {
        "metadata": {"name": f"{name}.{reason}", "namespace": NAMESPACE, "annotations": others.pop("annotations", {})},
        "involvedObject": {"kind": kind, "name": name, **others.pop("about", {})},
        "reason": reason,
        "message": message,
        "type": others.pop("type", "Normal"),
        "firstTimestamp": at(second),
        "lastTimestamp": at(second),
        "count": 1,
        **others,
    }


def runtime(
    name: str = "torch-distributed", kind: str = "ClusterTrainingRuntime", *, policy: Tree | None = None, **others: Any
) -> Tree:
    container = {"name": "node", "image": "torch:1", **others.pop("container", {})}
    job = {
        "name": others.pop("job_name", "node"),
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"template": {"spec": {"containers": [container]}}},
        },
    }
    labels = {"trainer.kubeflow.org/framework": "torch"}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "labels": others.pop("labels", labels)},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}} if policy is None else policy,
            "template": {"spec": {"replicatedJobs": [*others.pop("jobs", []), job]}},
        },
    }
