"""`resourcesPerNode` reaches pods, also those of a runtime without an mlPolicy. Quota: tests/fleet/one_cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lab.images import reference as image

if TYPE_CHECKING:
    from tests.e2e.user import User

Tree = dict[str, Any]


def _runtime(name: str) -> Tree:
    container = {
        "name": "node",
        "image": image("python"),
        "imagePullPolicy": "Never",
        "command": ["python3", "-c", "pass"],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"nvidia.com/gpu": "1"}},
    }
    job = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {
                "backoffLimit": 0,
                "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
            },
        },
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"replicatedJobs": [job]}}},
    }


def test_a_runtime_without_a_policy_hears_resources_per_node(user: User) -> None:
    said = {"requests": {"cpu": "20m"}, "limits": {"nvidia.com/gpu": "2"}}
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "sized"},
        "spec": {
            "runtimeRef": {"kind": "TrainingRuntime", "name": "bare"},
            "trainer": {"numNodes": 2, "resourcesPerNode": said},
        },
    }
    user.apply(_runtime("bare"), job)
    user.wait_state("sized", "Succeeded")
    pods = user.pods("sized")
    assert len(pods) == 2
    for pod in pods:
        resources = pod["spec"]["containers"][0]["resources"]
        assert resources["requests"] == {"cpu": "20m", "memory": "16Mi", "nvidia.com/gpu": "2"}
        assert resources["limits"] == {"nvidia.com/gpu": "2"}
