"""Jobs of the older kinds in every state, for a change from one operator to the other and back.

Their pods ask for a scheduler that is not there, and the test plays it and the kubelet, so that a job runs until the
test ends it.
A story is a list of words: `start` (its pods run), `succeed [POD]`, `fail POD CODE`, `renewed POD` (the operator made
it again), `suspend`, `resume`, `delete`, `await CONDITION`. A pod is named by its role and index: `worker-0`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Tree = dict[str, Any]

_NOBODY = "nobody"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
_SPECS = {
    "PyTorchJob": ("pytorchReplicaSpecs", "pytorch"),
    "TFJob": ("tfReplicaSpecs", "tensorflow"),
    "XGBoostJob": ("xgbReplicaSpecs", "xgboost"),
    "PaddleJob": ("paddleReplicaSpecs", "paddle"),
    "JAXJob": ("jaxReplicaSpecs", "jax"),
}
KINDS = tuple(_SPECS)


@dataclass(frozen=True)
class Member:
    """A job: how it is made, what happens to it under the first operator, and what under the second.

    `counts` are its replicas by type. After `early` it is where it is taken over; after `late` its last condition that
    is True is of type `ends`, empty for a job that nobody here may touch.
    """

    name: str
    kind: str
    counts: dict[str, int] = field(hash=False)
    ends: str
    early: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    restart: str = ""
    spec: Tree = field(default_factory=dict, hash=False)
    policy: Tree = field(default_factory=dict, hash=False)

    @property
    def size(self) -> int:
        """How many pods it has when it is whole."""
        return sum(self.counts.values())

    def document(self, namespace: str) -> Tree:
        """Return the job."""
        specs, container = _SPECS[self.kind]
        restart = {"restartPolicy": self.restart} if self.restart else {}
        replicas = {
            kind: {"replicas": count, **restart, "template": _pod(container)} for kind, count in self.counts.items()
        }
        policy = {"runPolicy": self.policy} if self.policy else {}
        return {
            "apiVersion": "kubeflow.org/v1",
            "kind": self.kind,
            "metadata": {"name": self.name, "namespace": namespace, "labels": {"team": "a"}},
            "spec": {specs: replicas, **policy, **self.spec},
        }


def _pod(container: str) -> Tree:
    program = {"name": container, "image": "test:1", "command": ["train"], "env": [{"name": "A", "value": "b"}]}
    spec = {"containers": [program], "schedulerName": _NOBODY, "terminationGracePeriodSeconds": 0}
    return {"metadata": {"labels": {"l": "v"}, "annotations": {"a": "b"}}, "spec": spec}


_RUN = ("start", "await Running")
_DONE = ("succeed", "await Succeeded")
_STOP = ("suspend", "await Suspended")
_PAIR = {"Master": 1, "Worker": 2}
_UTILISATION = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
_ELASTIC = {"rdzvBackend": "c10d", "minReplicas": 1, "maxReplicas": 3, "maxRestarts": 10, "metrics": [_UTILISATION]}

MEMBERS = (
    Member("torch-running", "PyTorchJob", _PAIR, "Succeeded", _RUN, _DONE),
    Member("torch-pending", "PyTorchJob", _PAIR, "Succeeded", ("await Created",), (*_RUN, *_DONE)),
    Member("torch-workers", "PyTorchJob", {"Worker": 2}, "Succeeded", _RUN, _DONE),
    Member("torch-done", "PyTorchJob", _PAIR, "Succeeded", (*_RUN, "succeed master-0", "await Succeeded")),
    Member(
        "torch-done-tidy",
        "PyTorchJob",
        _PAIR,
        "Succeeded",
        (*_RUN, "succeed master-0", "await Succeeded"),
        policy={"cleanPodPolicy": "All"},
    ),
    Member(
        "torch-failed",
        "PyTorchJob",
        _PAIR,
        "Failed",
        (*_RUN, "fail worker-1 1", "await Failed"),
        restart="Never",
        policy={"cleanPodPolicy": "Running"},
    ),
    Member(
        "torch-suspended",
        "PyTorchJob",
        _PAIR,
        "Succeeded",
        ("await Suspended",),
        ("resume", *_RUN, *_DONE),
        policy={"suspend": True},
    ),
    Member("torch-stopped", "PyTorchJob", _PAIR, "Succeeded", (*_RUN, *_STOP), ("resume", *_RUN, *_DONE)),
    Member("torch-stops-later", "PyTorchJob", _PAIR, "Suspended", _RUN, _STOP),
    Member(
        "torch-restarted",
        "PyTorchJob",
        _PAIR,
        "Succeeded",
        (*_RUN, "fail worker-0 137", "renewed worker-0", *_RUN),
        ("fail worker-1 130", "renewed worker-1", *_RUN, *_DONE),
        restart="ExitCode",
        policy={"backoffLimit": 10},
    ),
    Member(
        "torch-elastic",
        "PyTorchJob",
        {"Worker": 2},
        "Succeeded",
        _RUN,
        ("succeed worker-0", "await Succeeded"),
        spec={"elasticPolicy": _ELASTIC},
    ),
    Member(
        "torch-deadline-far",
        "PyTorchJob",
        {"Master": 1},
        "Succeeded",
        _RUN,
        _DONE,
        policy={"activeDeadlineSeconds": 3600, "ttlSecondsAfterFinished": 3600},
    ),
    Member("torch-deleted", "PyTorchJob", _PAIR, "", _RUN, ("delete",)),
    Member("torch-elsewhere", "PyTorchJob", _PAIR, "", policy={"managedBy": MULTIKUEUE}),
    Member(
        "tf-running",
        "TFJob",
        {"PS": 1, "Worker": 2},
        "Succeeded",
        _RUN,
        ("succeed worker-0", "await Succeeded"),
    ),
    Member(
        "tf-chief",
        "TFJob",
        {"Chief": 1, "Worker": 1},
        "Succeeded",
        _RUN,
        ("succeed chief-0", "await Succeeded"),
    ),
    Member(
        "tf-all-workers",
        "TFJob",
        {"Worker": 2},
        "Succeeded",
        (*_RUN, "succeed worker-0"),
        ("succeed worker-1", "await Succeeded"),
        spec={"successPolicy": "AllWorkers"},
    ),
    Member("xgboost-running", "XGBoostJob", _PAIR, "Succeeded", _RUN, _DONE),
    Member(
        "paddle-fails-later", "PaddleJob", {"Worker": 2}, "Failed", _RUN, ("fail worker-0 1", "await Failed"), "Never"
    ),
    Member("jax-running", "JAXJob", {"Worker": 2}, "Succeeded", _RUN, _DONE),
)
