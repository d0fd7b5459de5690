"""Simulated nodes: kwok plays the kubelet of as many nodes as asked, and their pods run at once and cost nothing.

A pod of a Job completes as soon as it runs, unless its annotation `LASTS` says how long it runs: `2s`, `24h`. A test
may write the annotation anew on a running pod, and so end it when it likes: the time counts from there.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import yaml

from lab.engines import binary, manifests
from lab.errors import LabError
from lab.processes import wait_for
from lab.webhooks import documents

if TYPE_CHECKING:
    from lab.cluster import Cluster

_PORT = 10247
_WRITERS = 8
_PACE = {
    "podPlayStageParallelism": 64,
    "nodePlayStageParallelism": 16,
    "nodeLeaseParallelism": 8,
    "nodeLeaseDurationSeconds": 600,
}
"""Writes at once, and heartbeats by lease every 150 s: with the shipped 4 and a status patch per node every 20 s, 1,000
nodes keep kwok so busy that 5,000 pods take over ten minutes. The controller-manager's grace period fits it."""
LASTS = "pod-complete.stage.kwok.x-k8s.io/delay"
"""How long a Job's pod runs: an annotation of kwok's own, which its pod stages read in one of two shipped sets only."""
TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
"""Keeps pods that want a real node off the simulated ones; a pod that tolerates it may go there."""


def install(
    cluster: Cluster, *, nodes: int, capacity: dict[str, str] | None = None, tainted: bool = False, prefix: str = "kwok"
) -> None:
    """Start kwok (once) and add simulated nodes; `capacity` adds to what each of them offers, GPUs for example."""
    if "kwok" not in cluster.engines():
        config = cluster.folder / "kwok.yaml"
        options = {"manageNodesWithAnnotationSelector": "kwok.x-k8s.io/node=fake", **_PACE}
        settings = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "options": options}
        config.write_text(yaml.safe_dump_all([settings, *_pod_stages()]))
        command = [
            binary("kwok"),
            f"--config={config}",
            f"--kubeconfig={cluster.kubeconfig}",
            f"--server-address=127.0.0.1:{_PORT}",
            f"--node-ip={cluster.address}",
        ]
        cluster.start("kwok", command)
        cluster.wait_http("kwok", _PORT, path="/healthz")
    objects = [_node(f"{prefix}-{number}", capacity or {}, tainted=tainted) for number in range(nodes)]

    def create(share: list[dict[str, Any]]) -> None:
        with cluster.connection() as connection:
            for node in share:
                connection.send("POST", "/api/v1/nodes", json.dumps(node))

    with ThreadPoolExecutor(_WRITERS) as pool:
        list(pool.map(create, [objects[start::_WRITERS] for start in range(_WRITERS)]))


def hold(cluster: Cluster, namespace: str, lasts: str = "24h") -> None:
    """Let pods that are made in a namespace from now on run so long, whatever their templates say; `release` ends it.

    For documents that stand in the tree as users write them, and know nothing of simulated nodes.
    """
    name = _policy_name(namespace)
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    expression = f'Object{{metadata: Object.metadata{{annotations: {{"{LASTS}": "{lasts}"}}}}}}'
    change = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    policy = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"namespaceSelector": selector, "resourceRules": [pods]},
        "mutations": [change],
    }
    api, meta = "admissionregistration.k8s.io/v1", {"name": name}
    cluster.apply(
        {"apiVersion": api, "kind": "MutatingAdmissionPolicy", "metadata": meta, "spec": policy},
        {"apiVersion": api, "kind": "MutatingAdmissionPolicyBinding", "metadata": meta, "spec": {"policyName": name}},
    )

    def acts() -> bool:
        probe = ("--image=none", "--restart=Never", "--dry-run=server", "--output=yaml")
        return LASTS in cluster.kubectl("run", "probe", f"--namespace={namespace}", *probe).stdout

    wait_for(f"the policy {name}", acts, seconds=60, log=cluster.log("kube-apiserver"))


def release(cluster: Cluster, namespace: str) -> None:
    """Let the pods of a namespace end now, and later ones as their templates say."""
    for kind in ("mutatingadmissionpolicybinding", "mutatingadmissionpolicy"):
        cluster.kubectl("delete", kind, _policy_name(namespace), "--ignore-not-found")
    words = ("annotate", "pods", "--all", "--overwrite", f"--namespace={namespace}", f"{LASTS}=0s")
    problems = cluster.kubectl(*words, check=False).stderr.splitlines()
    others = [line for line in problems if "(NotFound)" not in line]  # a pod that is gone by now has ended
    if others:
        raise LabError(f"pods of {namespace} could not be let go: {others[0]}")


def _policy_name(namespace: str) -> str:
    return f"pods-last.{namespace}.lab.trainplane.dev"


def _pod_stages() -> list[dict[str, Any]]:
    """Return kwok's fast stages of a pod; completion waits as long as the pod's annotation says.

    Shipped, deletion removes the pod's finalizers too; a kubelet leaves them to those who put them there.
    """
    folder = manifests("kwok") / "kustomize/stage/pod/fast"
    stages = documents(*(folder / f"pod-{name}.yaml" for name in ("ready", "complete", "delete")))
    for stage in stages:
        if stage["metadata"]["name"] == "pod-complete":
            lasts = {"jq": {"expression": f'.metadata.annotations["{LASTS}"]'}}
            stage["spec"]["delay"] = {"durationMilliseconds": 0, "durationFrom": lasts}
        stage["spec"]["next"].pop("finalizers", None)
    return stages


def _node(name: str, capacity: dict[str, str], *, tainted: bool) -> dict[str, Any]:
    offered = {"cpu": "32", "memory": "256Gi", "pods": "110"} | capacity
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "type": "kwok"},
        },
        "spec": {"taints": [TAINT]} if tainted else {},
        "status": {"allocatable": offered, "capacity": offered},
    }
