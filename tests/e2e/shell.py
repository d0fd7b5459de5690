"""TrainJobs that run a line of shell, for tests about what happens around a training."""

from __future__ import annotations

from typing import Any

from lab.images import reference as image

API = "trainer.kubeflow.org/v1alpha1"
WAITING = "while [ ! -e /tmp/go ]; do sleep 0.1; done"
"""A training that goes on when the test says so."""


def failing(words: str) -> str:
    """Return a program that complains and fails.

    A second lies between: of a process that ends in the same moment as it prints, the container runtime loses the last
    words on a busy machine, and no kubelet has them.
    """
    return f"echo {words} >&2; sleep 1; exit 3"


def shell_runtime(program: str, **job: Any) -> dict[str, Any]:
    """Return a runtime of the namespace that runs a shell program."""
    container = {
        "name": "node",
        "image": image("python"),
        "imagePullPolicy": "Never",
        "command": ["bash", "-c", program],
    }
    pod = {"terminationGracePeriodSeconds": 0, "restartPolicy": "Never", "containers": [container]}
    step = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"backoffLimit": 0, "template": {"spec": pod}, **job},
        },
    }
    spec = {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": [step]}}}
    return {"apiVersion": API, "kind": "TrainingRuntime", "metadata": {"name": "shell"}, "spec": spec}


def shell_job(name: str, **spec: Any) -> dict[str, Any]:
    ref = {"kind": "TrainingRuntime", "name": "shell"}
    return {"apiVersion": API, "kind": "TrainJob", "metadata": {"name": name}, "spec": {"runtimeRef": ref, **spec}}
