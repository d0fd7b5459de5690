"""A tenant of a cluster: jobs of older kinds written and watched with the rights of a namespace, and no more."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.images import reference as image
from lab.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab.cluster import Cluster
    from lab.processes import Result
    from tests.fleet.api import Api

Tree = dict[str, Any]

NAMESPACE = "tenant"
USER = f"system:serviceaccount:{NAMESPACE}:{NAMESPACE}"
PATIENCE = 180.0
"""Seconds that anything may take on a busy machine of two cores."""
JOB_NAME = "training.kubeflow.org/job-name"
_SPECS = {
    "PyTorchJob": ("pytorchReplicaSpecs", "pytorch"),
    "TFJob": ("tfReplicaSpecs", "tensorflow"),
    "XGBoostJob": ("xgbReplicaSpecs", "xgboost"),
    "PaddleJob": ("paddleReplicaSpecs", "paddle"),
    "JAXJob": ("jaxReplicaSpecs", "jax"),
}
KINDS = tuple(f"{kind.lower()}s" for kind in _SPECS)


def job(name: str, kind: str = "PyTorchJob", *, policy: Tree | None = None, **replicas: Tree) -> Tree:
    """Return a job of replicas by type."""
    field, _ = _SPECS[kind]
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"runPolicy": policy or {}, field: replicas},
    }


def replicas(
    script: str, count: int = 1, restart: str = "Never", *, kind: str = "PyTorchJob", **container: Any
) -> Tree:
    """Return pods that run a shell script."""
    one = {
        "name": _SPECS[kind][1],
        "image": image("python"),
        "command": ["sh", "-c", script],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        **container,
    }
    spec = {"containers": [one], "terminationGracePeriodSeconds": 1}
    return {"replicas": count, "restartPolicy": restart, "template": {"spec": spec}}


@dataclass(frozen=True)
class Tenant:
    """Writes as the tenant; looks as the administrator, who sees the same faster."""

    cluster: Cluster
    api: Api

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> Result:
        """Run kubectl with the tenant's rights."""
        return self.cluster.kubectl(f"--as={USER}", f"--namespace={NAMESPACE}", *arguments, stdin=stdin, check=check)

    def apply(self, *documents: Tree, check: bool = True) -> Result:
        """`kubectl apply` some documents."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
        return self.kubectl("apply", "--filename=-", stdin=text, check=check)

    def has_account(self) -> bool:
        """Say whether the namespace has the account that pods have where they name none."""
        return self.cluster.kubectl("get", "serviceaccount", "default", "-n", NAMESPACE, check=False).code == 0

    def set_suspend(self, name: str, *, suspend: bool) -> None:
        patch = json.dumps({"spec": {"runPolicy": {"suspend": suspend}}})
        self.kubectl("patch", "pytorchjob", name, "--type=merge", f"--patch={patch}")

    def status(self, name: str, plural: str = "pytorchjobs") -> Tree:
        """Return a job's status; of one that is gone, or has none, an empty one."""
        found = self.api.get(plural, NAMESPACE, name) or {}
        status: Tree = found.get("status") or {}
        return status

    def conditions(self, name: str, plural: str = "pytorchjobs") -> dict[str, Tree]:
        """Return the conditions that hold, by type."""
        found = self.status(name, plural).get("conditions") or ()
        return {one["type"]: one for one in found if one["status"] == "True"}

    def pods(self, name: str) -> dict[str, Tree]:
        """Return a job's pods that are not on their way out, by name."""
        found = self.api.list("pods", NAMESPACE, labels=f"{JOB_NAME}={name}")
        return {one["metadata"]["name"]: one for one in found if "deletionTimestamp" not in one["metadata"]}

    def events(self, name: str, kind: str = "PyTorchJob") -> dict[str, str]:
        """Return what was told of a job: reason to message."""
        found = self.api.list("events", NAMESPACE, fields=f"involvedObject.kind={kind},involvedObject.name={name}")
        return {one["reason"]: one["message"] for one in found}

    def logs(self, pod: str) -> str:
        return self.kubectl("logs", pod).stdout

    def wait(self, what: str, holds: Callable[[], Any]) -> None:
        wait_for(what, lambda: bool(holds()), seconds=PATIENCE, log=self.cluster.log("trainplane"))

    def wait_condition(self, name: str, wanted: str, plural: str = "pytorchjobs") -> Tree:
        """Wait until a condition holds, and return it as it was then: the next moment it may be another."""
        found: dict[str, Tree] = {}

        def holds() -> bool:
            found.update(self.conditions(name, plural))
            return wanted in found

        self.wait(f"{name} to be {wanted}", holds)
        return found[wanted]


def home() -> list[Tree]:
    """Return the tenant's namespace, account and rights."""
    rules = [
        ("kubeflow.org", list(KINDS), ["create", "get", "list", "watch", "patch", "update", "delete"]),
        ("", ["pods", "services", "configmaps"], ["create", "get", "list", "watch", "patch", "delete"]),
        ("", ["pods/log"], ["get"]),
    ]
    meta = {"name": NAMESPACE, "namespace": NAMESPACE}
    rbac = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "Role",
            "metadata": meta,
            "rules": [{"apiGroups": [group], "resources": kinds, "verbs": verbs} for group, kinds, verbs in rules],
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": NAMESPACE},
            "subjects": [{"kind": "ServiceAccount", **meta}],
        },
    ]
