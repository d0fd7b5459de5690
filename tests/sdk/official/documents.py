"""What both clusters hold while the SDK is tried: runtimes on the lab's images, and a user with the rights it needs.

The same documents go to both sides, so that a difference between them is the operator's. Programs that the images lack
(`python`, `tune`, and `torchrun` where no torch is needed) are small scripts of a ConfigMap.
"""

from __future__ import annotations

import copy
from typing import Any

import yaml

from lab.engines import manifests
from lab.images import reference as image
from lab.paths import REPOSITORY
from lab.webhooks import documents
from tests.e2e.localise import REPORT

Tree = dict[str, Any]

API = "trainer.kubeflow.org/v1alpha1"
GROUP = "trainer.kubeflow.org"
QUEUE = "kueue.x-k8s.io/queue-name"
SLOT = "example.com/slot"
"""A resource of which the node has one, for jobs that cannot run whole."""
USER = "practitioner"
_TOOLS = "tools"
_SCRIPTS = {
    "python": '#!/bin/sh\nexec python3 "$@"\n',
    "torchrun": '#!/bin/sh\nexec python3 "$@"\n',
    "tune": f'#!/bin/sh\nexec python3 -c "{REPORT}" "$@"\n',
}


def rights() -> list[Tree]:
    """Return the role of the contract (A.4.1), no verb more."""
    rules = [
        (GROUP, ["clustertrainingruntimes", "trainingruntimes"], ["get", "list"]),
        (GROUP, ["trainjobs"], ["create", "get", "list", "delete"]),
        ("", ["pods"], ["list"]),
        ("", ["pods/log"], ["get"]),
        ("", ["events"], ["list"]),
    ]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": USER},
        "rules": [{"apiGroups": [group], "resources": kinds, "verbs": verbs} for group, kinds, verbs in rules],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": USER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": USER},
        "subjects": [{"kind": "ServiceAccount", "name": USER, "namespace": USER}],
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": USER, "namespace": USER}}
    return [*home(USER), account, role, binding]


def home(namespace: str) -> list[Tree]:
    """Return a namespace with what pods of these runtimes need in it."""
    meta = {"name": _TOOLS, "namespace": namespace}
    cache = {"name": "kubeflow-trainer-cache-initializer", "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": _SCRIPTS},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": cache},
    ]


def published() -> list[Tree]:
    """Return what tells the SDK which Trainer it speaks to."""
    return documents(REPOSITORY / "manifests/operator/public.yaml")


def runtimes() -> list[Tree]:
    """Return the runtimes of both clusters."""
    shipped = REPOSITORY / "runtimes"
    torch = _localised(shipped / "torch-distributed.yaml", "torch")
    tune = _localised(shipped / "torchtune-qwen2.5-1.5b.yaml", "python")
    cache = manifests("trainer") / "manifests/base/runtimes/data-cache/torch_distributed_with_cache.yaml"
    # A claim for each TrainJob needs a provisioner, which the lab has not.
    del tune["spec"]["template"]["spec"]["volumeClaimPolicies"]
    return [torch, tune, _localised(cache, "python"), plain(), mpi()]


def plain(name: str = "plain", *, namespace: str = "", framework: str = "plain", **jobset: Any) -> Tree:
    """Return a runtime that runs what the TrainJob brings, in a pod that is never tried twice."""
    container = {"name": "node", "image": image("python")}
    step = {
        "name": "node",
        "template": {
            "metadata": {"labels": {f"{GROUP}/trainjob-ancestor-step": "trainer"}},
            "spec": {
                "backoffLimit": 0,
                "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
            },
        },
    }
    return _equipped(
        {
            "apiVersion": API,
            "kind": "TrainingRuntime" if namespace else "ClusterTrainingRuntime",
            "metadata": {
                "name": name,
                "labels": {f"{GROUP}/framework": framework} if framework else {},
                **({"namespace": namespace} if namespace else {}),
            },
            "spec": {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": [step], **jobset}}},
        },
        "python",
    )


def mpi() -> Tree:
    """Return the runtime of docs/frameworks/mpi.md, with the folder into which the SDK writes the function."""
    page = (REPOSITORY / "docs/frameworks/mpi.md").read_text()
    runtime: Tree = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    runtime = _equipped(runtime, "torch")
    for step in jobs(runtime):
        spec = pod(step)
        spec["volumes"].append({"name": "home", "emptyDir": {}})
        for container in spec["containers"]:
            container["volumeMounts"].append({"name": "home", "mountPath": "/home/mpiuser"})
    return runtime


def jobs(runtime: Tree) -> list[Tree]:
    """Return the replicated jobs of a runtime."""
    found: list[Tree] = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    return found


def pod(step: Tree) -> Tree:
    """Return the pod spec of a replicated job."""
    found: Tree = step["template"]["spec"]["template"]["spec"]
    return found


def unmanaged(name: str, namespace: str, *, runtime: str = "plain") -> Tree:
    """Return a TrainJob as a MultiKueue hub has it: another cluster runs it, and its status is copied."""
    return {
        "apiVersion": API,
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"runtimeRef": {"name": runtime}, "managedBy": "kueue.x-k8s.io/multikueue"},
    }


def _localised(path: Any, image_name: str) -> Tree:
    (document,) = documents(path)
    return _equipped(copy.deepcopy(document), image_name)


def _equipped(runtime: Tree, image_name: str) -> Tree:
    """Give a runtime the lab's image and tools; an initializer reports what it was given."""
    tools = _SCRIPTS if image_name == "python" else {"python": ""}  # torch has a torchrun of its own
    for step in jobs(runtime):
        spec = pod(step)
        spec["terminationGracePeriodSeconds"] = 0
        mounted = {mount["name"] for one in spec["containers"] for mount in one.get("volumeMounts", [])}
        spec["volumes"] = [
            {"name": _TOOLS, "configMap": {"name": _TOOLS, "defaultMode": 0o755}},
            *({"name": name, "emptyDir": {}} for name in mounted),
        ]
        for container in spec["containers"]:
            container |= {"image": image(image_name), "imagePullPolicy": "Never"}
            container["volumeMounts"] = [
                *container.get("volumeMounts", []),
                *({"name": _TOOLS, "mountPath": f"/usr/local/bin/{tool}", "subPath": tool} for tool in tools),
            ]
            if container["name"].endswith("-initializer"):
                container["command"] = ["python3", "-c", REPORT]
    return runtime
