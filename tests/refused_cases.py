"""TrainJobs whose pods the API server refuses, and some that look so: for our judgement and for its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Tree = dict[str, Any]

MANAGER = "example.com/team"
_VOLUME = {"name": "v", "emptyDir": {}}
_CLAIM = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
    "dataSource": {"kind": "PersistentVolumeClaim", "name": "a"},
}
_CLAIMED = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": _CLAIM}}}
_PATCHED = f"spec.runtimePatches[manager={MANAGER}].trainingRuntimeSpec.template.spec.replicatedJobs[name=node]"
_POD = f"{_PATCHED}.template.spec.template"


@dataclass(frozen=True)
class Case:
    """A TrainJob and its runtime: pods of a runtime, a patch of them, and `resourcesPerNode`."""

    name: str
    place: str = ""
    """The field that the refusal names; how its path ends."""
    pod: Tree = field(default_factory=dict)
    """What the patch says of the pod's spec."""
    metadata: Tree = field(default_factory=dict)
    """What it says of the pod's metadata."""
    resources: Tree | None = None
    container: Tree = field(default_factory=dict)
    """What the runtime's container has."""
    runtime_pod: Tree = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    def job(self, namespace: str = "team") -> Tree:
        change = {"name": "node", "template": {"spec": {"template": {"metadata": self.metadata, "spec": self.pod}}}}
        entry = {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [change]}}}}
        trainer = {"trainer": {"resourcesPerNode": self.resources}} if self.resources is not None else {}
        return {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "job", "namespace": namespace, "uid": "uid-1"},
            "spec": {
                "runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": "r"},
                "suspend": True,
                "runtimePatches": [entry],
                **trainer,
            },
        }

    def runtime(self) -> Tree:
        container = {"name": "node", "image": "none.invalid/x:1", **self.container}
        pod = {"restartPolicy": "Never", "containers": [container], **self.runtime_pod}
        labels = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
        job = {"name": "node", "replicas": 1, "template": {"metadata": labels, "spec": {"template": {"spec": pod}}}}
        return {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "ClusterTrainingRuntime",
            "metadata": {"name": "r"},
            "spec": {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": [job]}}},
        }


def _mounting(*mounts: Tree, volumes: list[Tree] | None = None) -> Tree:
    mounted = {"containers": [{"name": "node", "volumeMounts": list(mounts)}]}
    return {**mounted, "volumes": volumes} if volumes else mounted


def _tolerating(**toleration: Any) -> Tree:
    return {"tolerations": [toleration]}


_MOUNT = {"name": "v", "mountPath": "/v"}
_SPELT = "spec.trainer.resourcesPerNode"
_GPU = "nvidia.com/gpu"

REFUSED = (
    Case("an undeclared volume", f"{_POD}.spec.containers[name=node].volumeMounts[name=v].name", _mounting(_MOUNT)),
    Case("a label with a blank", f"{_POD}.metadata.labels.run", metadata={"labels": {"run": "llama 7b run #1"}}),
    Case("a label that is too long", "labels.run", metadata={"labels": {"run": "x" * 64}}),
    Case("a key that is none", "labels[a/b/c]", metadata={"labels": {"a/b/c": "x"}}),
    Case("an annotation's key", "annotations.my key", metadata={"annotations": {"my key": "x"}}),
    Case("a node's label", f"{_POD}.spec.nodeSelector.pool", {"nodeSelector": {"pool": "a b"}}),
    Case("an operator that is none", f"{_POD}.spec.tolerations[0].operator", _tolerating(key="a", operator="Exist")),
    Case("a value beside Exists", "tolerations[0].value", _tolerating(key="a", operator="Exists", value="b")),
    Case("no key and Equal", "tolerations[0].operator", _tolerating(operator="Equal", value="b")),
    Case("an effect that is none", "tolerations[0].effect", _tolerating(key="a", operator="Exists", effect="NoRun")),
    Case(
        "seconds without NoExecute",
        "tolerations[0].effect",
        _tolerating(key="a", operator="Exists", effect="NoSchedule", tolerationSeconds=3),
    ),
    Case("a service account", f"{_POD}.spec.serviceAccountName", {"serviceAccountName": "My_Account"}),
    Case("a volume of two kinds", "volumes[name=v].hostPath", {"volumes": [{**_VOLUME, "hostPath": {"path": "/"}}]}),
    Case("a volume's name", "volumes[name=My_V].name", {"volumes": [{"name": "My_V", "emptyDir": {}}]}),
    Case("a claim that the pods do not have", f"{_SPELT}.claims", resources={"claims": [{"name": "gpu"}]}),
    Case("devices by halves", _SPELT, resources={"limits": {_GPU: "500m"}}),
    Case("two amounts of a device", _SPELT, resources={"limits": {_GPU: "2"}, "requests": {_GPU: "1"}}),
    Case("a resource that is none", _SPELT, resources={"limits": {"gpu": "1"}}),
    Case("less than nothing", _SPELT, resources={"requests": {"cpu": "-1"}}),
    Case("huge pages alone", _SPELT, resources={"limits": {"hugepages-2Mi": "4Mi"}}),
    Case("more than the limit", _SPELT, resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}),
    Case("a runtime's device without a limit", "spec.runtimeRef", container={"resources": {"requests": {_GPU: "1"}}}),
    Case("a runtime that starts over", "spec.runtimeRef", runtime_pod={"restartPolicy": "Always"}),
    Case("a variable's name", "spec.runtimeRef", container={"env": [{"name": "A=B", "value": "1"}]}),
)

ALLOWED = (
    Case("nothing"),
    Case("a volume of its own", pod=_mounting(_MOUNT, volumes=[_VOLUME])),
    Case("a runtime's volume", pod=_mounting(_MOUNT), runtime_pod={"volumes": [_VOLUME]}),
    Case("one volume twice", pod=_mounting(_MOUNT, {**_MOUNT, "mountPath": "/w"}, volumes=[_VOLUME])),
    Case("a volume without a source", pod={"volumes": [{"name": "v"}]}),
    Case("a projected volume without sources", pod={"volumes": [{"name": "v", "projected": {"defaultMode": 420}}]}),
    Case("a claim that is made of one in the core group", pod={"volumes": [_CLAIMED]}),
    Case(
        "labels", metadata={"labels": {"a": "", "example.com/B_c.d": "E-f_g.1"}, "annotations": {"X.y/Z": "any text"}}
    ),
    Case("every taint", pod=_tolerating(operator="Exists")),
    Case("a taint", pod=_tolerating(key="a.b/c", value="d", effect="NoExecute", tolerationSeconds=3)),
    Case("node selector", pod={"nodeSelector": {"a.b/c": ""}}),
    Case("a service account", pod={"serviceAccountName": "my.account-1"}),
    Case(
        "a claim",
        resources={"claims": [{"name": "gpu"}]},
        runtime_pod={"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]},
    ),
    Case("a device", resources={"limits": {_GPU: "2"}}),
    Case("a device by its request", resources={"requests": {_GPU: "2"}}),
    Case(
        "more devices",
        resources={"limits": {_GPU: "2"}},
        container={"resources": {"limits": {_GPU: 1}, "requests": {_GPU: 1}}},
    ),
    Case("huge pages", resources={"limits": {"hugepages-2Mi": "4Mi", "memory": "1Gi"}}),
    Case("half a CPU", resources={"requests": {"cpu": "0.5"}, "limits": {"cpu": "500m"}}),
    Case("disk", resources={"requests": {"ephemeral-storage": "1Gi"}}),
    Case("none of a device", resources={"limits": {_GPU: "0"}}),
    Case("a variable's name", container={"env": [{"name": "my.var-1", "value": "1"}]}),
)
