"""The objects of the benchmark: TrainJobs of about 4 KB, and the JobSets that they become.

The TrainJobs belong to MultiKueue (`managedBy`), so for the reference, too, each reconcile is a no-op.
"""

from __future__ import annotations

from typing import Any

from trainplane.kube.resource import Resource

TRAINJOBS = Resource("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob")
JOBSETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")

JOBS_PER_NAMESPACE = 1000
_PADDING = "x" * 60
_ENV = [{"name": f"SETTING_{number}", "value": f"value-{number}-{_PADDING}"} for number in range(16)]


def namespace(number: int) -> str:
    """Return the namespace of the job with this number."""
    return f"team-{number // JOBS_PER_NAMESPACE}"


def trainjob(number: int) -> dict[str, Any]:
    """Return the TrainJob with this number."""
    trainer = {
        "numNodes": 4,
        "image": "registry.example.test/team/image:2026.11",
        "command": ["torchrun", "/workspace/train.py", "--epochs", "10", "--batch-size", "256"],
        "env": _ENV,
        "resourcesPerNode": {"requests": {"cpu": "8", "memory": "64Gi"}, "limits": {"nvidia.com/gpu": "8"}},
    }
    return {
        "apiVersion": TRAINJOBS.api_version,
        "kind": "TrainJob",
        "metadata": {"name": f"job-{number}", "namespace": namespace(number), "labels": {"team": namespace(number)}},
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "managedBy": "kueue.x-k8s.io/multikueue",
            "suspend": True,
            "trainer": trainer,
        },
    }


def jobset(number: int) -> dict[str, Any]:
    """Return the JobSet of the TrainJob with this number."""
    container = {"name": "node", "image": "registry.example.test/team/image:2026.11", "env": _ENV}
    pod = {"spec": {"containers": [container]}}
    job = {"name": "node", "template": {"spec": {"parallelism": 4, "completions": 4, "template": pod}}}
    return {
        "apiVersion": JOBSETS.api_version,
        "kind": "JobSet",
        "metadata": {"name": f"job-{number}", "namespace": namespace(number)},
        "spec": {"suspend": True, "replicatedJobs": [job]},
    }
