"""What a cluster of both shapes has: the kinds that are served, the rights that they take, a runtime of today's."""

from __future__ import annotations

from typing import Any, Final

from deploy.legacy_rbac import NEEDS
from lab.trainplane import ACCOUNT, NAMESPACE

Tree = dict[str, Any]

KINDS: Final = ("v2alpha1trainjobs", "v2alpha1trainingruntimes", "v2alpha1clustertrainingruntimes")
OLDER: Final = "kubeflow.org/v2alpha1"
TODAY: Final = "trainer.kubeflow.org/v1alpha1"
ANCESTOR: Final = "trainer.kubeflow.org/trainjob-ancestor-step"


def rights() -> list[Tree]:
    """Return the role that the operator needs beside its own, and its binding: what we ship for these kinds."""
    grants = [grant for need in NEEDS if set(need.kinds) & set(KINDS) for grant in need.grants]
    rbac = "rbac.authorization.k8s.io"
    role = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "older"},
        "rules": [grant.rule() for grant in grants],
    }
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "older"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "older"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    }
    return [role, binding]


def runtime(api: str, name: str, *, kind: str = "ClusterTrainingRuntime", **meta: Any) -> Tree:
    """Return a runtime of either shape, which say the same."""
    container = {"name": "node", "image": "registry.invalid/none:1", "command": ["train"]}
    step = {
        "name": "node",
        "template": {
            "metadata": {"labels": {ANCESTOR: "trainer"}},
            "spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
        },
    }
    metadata = {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch"}, **meta}
    spec = {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": {"spec": {"replicatedJobs": [step]}}}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def train_job(api: str, name: str, *, group: str = "trainer.kubeflow.org", runtime: str = "today", **spec: Any) -> Tree:
    """Return a TrainJob of either shape on a runtime."""
    ref = {"apiGroup": group, "kind": "ClusterTrainingRuntime", "name": runtime}
    return {"apiVersion": api, "kind": "TrainJob", "metadata": {"name": name}, "spec": {"runtimeRef": ref, **spec}}


TODAYS_RUNTIME: Final = runtime(TODAY, "today")
