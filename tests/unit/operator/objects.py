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


def pod(
    index: int = 0,
    *,
    jobset_uid: str = "",
    attempt: int = 0,
    phase: str = "Running",
    ready: bool = True,
    node: str = "machine-1",
    exit_code: int | None = None,
    reason: str = "Error",
    ended: str = "2026-01-01T00:04:00Z",
    runs_again: bool = False,
    meta: Tree | None = None,
    **status: Any,
) -> Tree:
    """Return a pod of the JobSet `job`; with an exit code, of one whose container ended so."""
    state: Tree = {"running": {"startedAt": CREATED}}
    before: Tree = {}
    if exit_code is not None:
        end = {"terminated": {"exitCode": exit_code, "reason": reason, "finishedAt": ended, "startedAt": CREATED}}
        state, before = ({"waiting": {"reason": "CrashLoopBackOff"}}, end) if runs_again else (end, {})
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "job",
        "jobset.sigs.k8s.io/jobset-uid": jobset_uid,
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
        "jobset.sigs.k8s.io/job-index": "0",
        "jobset.sigs.k8s.io/restart-attempt": str(attempt),
        "batch.kubernetes.io/job-completion-index": str(index),
        "team": "secret-team",
    }
    name = f"job-node-0-{index}-a{attempt}"
    shown = {"name": "node", "restartCount": int(runs_again), "state": state, "lastState": before, "image": "img:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"uid-{name}",
            "creationTimestamp": CREATED,
            "labels": labels,
            **(meta or {}),
        },
        "spec": {
            "nodeName": node,
            "containers": [
                {
                    "name": "node",
                    "image": "img:1",
                    "command": ["python", "--token=hunter2"],
                    "env": [{"name": "TOKEN", "value": "hunter2"}],
                    "resources": {"limits": {"memory": "1Gi", "cpu": "2"}},
                }
            ],
        },
        "status": {
            "phase": phase,
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "True" if node else "False",
                    "reason": "" if node else "Unschedulable",
                },
                {"type": "Ready", "status": "True" if ready and phase == "Running" else "False"},
                {"type": "Initialized", "status": "True"},
            ],
            "containerStatuses": [shown] if node else [],
            **status,
        },
    }
