"""Runtimes and TrainJobs for tests, each a small one with what the test changes."""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]

NAMESPACE = "team"
CREATED = "2026-01-01T00:00:00Z"


def runtime(name: str = "torch", *, image: str = "img:1", kind: str = "ClusterTrainingRuntime", **meta: Any) -> Tree:
    metadata: Tree = {"name": name, "uid": f"uid-{name}", **meta}
    if kind == "TrainingRuntime":
        metadata["namespace"] = NAMESPACE
    pod = {"spec": {"containers": [{"name": "node", "image": image}]}}
    job = {
        "name": "node",
        "replicas": 1,
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"template": pod},
        },
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": {"spec": {"replicatedJobs": [job]}}},
    }


def train_job(name: str = "job", *, runtime_ref: Tree | None = None, meta: Tree | None = None, **spec: Any) -> Tree:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "creationTimestamp": CREATED,
            "generation": 1,
            "uid": f"uid-{name}",
            **(meta or {}),
        },
        "spec": {
            "runtimeRef": {
                "apiGroup": "trainer.kubeflow.org",
                "kind": "ClusterTrainingRuntime",
                "name": "torch",
                **(runtime_ref or {}),
            },
            "managedBy": "trainer.kubeflow.org/trainjob-controller",
            "suspend": False,
            "trainer": {"numNodes": 2},
            **spec,
        },
    }


def condition(kind: str, reason: str = "Because", message: str = "so it is", status: str = "True") -> Tree:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-01T00:05:00Z",
    }


def counts(name: str = "node", **numbers: int) -> Tree:
    return {"name": name, "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0, **numbers}


COMPLETED = condition("Completed", "AllJobsCompleted", "jobset completed successfully")
BROKEN = condition("Failed", "FailedJobs", "jobset failed due to one or more job failures")
