"""A tenant: a namespace held to Pod Security's `baseline`, and a person there who may create TrainJobs and look."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import yaml

from lab import accounts, node
from lab.images import reference as image
from lab.paths import REPOSITORY
from tests.cli.tenant import wait_allowed
from trainplane import KubernetesBackendConfig, TrainerClient

if TYPE_CHECKING:
    from pathlib import Path

    from lab.cluster import Cluster

Tree = dict[str, Any]

MACHINES: Final = (node.NAME, node.SECOND)
RUNTIME: Final = "chain"
_API: Final = "rbac.authorization.k8s.io"
_RULES: Final = [
    {"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"], "verbs": ["create", "get", "list", "watch"]},
    {"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainingruntimes"], "verbs": ["get", "list"]},
    {"apiGroups": [""], "resources": ["pods", "pods/log", "events"], "verbs": ["get", "list", "watch"]},
]
_TRAINER: Final = """
import atexit, hashlib, os, pathlib, time
atexit.register(time.sleep, 1)  # or the container runtime may lose the last words
for folder in ("/workspace/dataset", "/workspace/model"):
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.is_file() and ".trainplane" not in path.parts:
            print(path, hashlib.sha256(path.read_bytes()).hexdigest(), flush=True)
pathlib.Path(f"/workspace/seen-{os.environ['JOB_COMPLETION_INDEX']}").touch()
"""


@dataclass(frozen=True)
class Tenant:
    """Who fetches and trains in one namespace."""

    cluster: Cluster
    namespace: str
    initializers: str
    """The image that fetches."""

    def settle(self) -> None:
        """Make the namespace with its rights and the runtime, as an admin does."""
        meta = {"name": self.namespace, "labels": {"pod-security.kubernetes.io/enforce": "baseline"}}
        here = {"name": self.namespace, "namespace": self.namespace}
        subject = {"kind": "ServiceAccount", **here}
        role = {"apiGroup": _API, "kind": "Role", "name": self.namespace}
        self.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        self.cluster.apply(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here},
            {"apiVersion": f"{_API}/v1", "kind": "Role", "metadata": here, "rules": _RULES},
            {
                "apiVersion": f"{_API}/v1",
                "kind": "RoleBinding",
                "metadata": here,
                "roleRef": role,
                "subjects": [subject],
            },
            self._runtime(),
        )
        who = f"system:serviceaccount:{self.namespace}:{self.namespace}"
        wait_allowed(self.cluster, who, "create", "trainjobs", self.namespace)

    @cached_property
    def client(self) -> TrainerClient:
        """The tenant's own client, with the tenant's own rights."""
        kubeconfig = accounts.kubeconfig(self.cluster, self.namespace, self.namespace)
        return TrainerClient(KubernetesBackendConfig(namespace=self.namespace, config_file=str(kubeconfig)))

    def _runtime(self) -> Tree:
        """Return a shipped runtime that trains on two machines; of its initializers only the image's name changes."""
        runtime: Tree = yaml.safe_load((REPOSITORY / "runtimes/torchtune-llama3.2-1b.yaml").read_text())
        labels = {"trainer.kubeflow.org/framework": "torch"}
        runtime |= {"kind": "TrainingRuntime", "metadata": {"name": RUNTIME, "namespace": self.namespace}}
        runtime["metadata"]["labels"] = labels
        runtime["spec"]["mlPolicy"]["numNodes"] = len(MACHINES)
        for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
            pod = job["template"]["spec"]["template"]
            (container,) = pod["spec"]["containers"]
            container["imagePullPolicy"] = "Never"
            if job["name"] == "node":
                container |= {"image": image("python"), "command": ["python3", "-c", _TRAINER]}
                del container["resources"]
                spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
                spread["matchLabelKeys"] = ["jobset.sigs.k8s.io/jobset-name"]
                pod["metadata"] = {"labels": {"step": "node"}}
                pod["spec"]["topologySpreadConstraints"] = [
                    {**spread, "labelSelector": {"matchLabels": {"step": "node"}}}
                ]
            else:
                container["image"] = self.initializers
        return runtime

    def keep(self, name: str, **values: str) -> None:
        """Keep values in a Secret."""
        meta = {"name": name, "namespace": self.namespace}
        self.cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": values})

    def offer(self, claim: str, *, claimed: bool = False) -> Path:
        """Offer a volume for a claim, and with `claimed` make that; return its folder, which both machines see."""
        folder = self.cluster.folder / "volumes" / self.namespace / claim
        folder.mkdir(parents=True)
        folder.chmod(0o777)
        size, modes = {"storage": "20Gi"}, ["ReadWriteOnce"]
        reference = {"namespace": self.namespace, "name": claim}
        spec = {"capacity": size, "accessModes": modes, "hostPath": {"path": str(folder)}, "claimRef": reference}
        meta = {"name": f"{self.namespace}-{claim}"}
        self.cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": spec})
        if claimed:
            wanted = {"accessModes": modes, "resources": {"requests": size}}
            self.cluster.apply(
                {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": reference, "spec": wanted}
            )
        return folder

    def pods(self, job: str, step: str) -> list[Tree]:
        """Return the pods of a step of a TrainJob."""
        labels = "jobset.sigs.k8s.io/jobset-name={},jobset.sigs.k8s.io/replicatedjob-name={}"
        selector = f"--selector={labels.format(job, step)}"
        found: list[Tree] = self.cluster.get(f"--namespace={self.namespace}", "pods", selector)["items"]
        return found

    def condition(self, job: str, kind: str) -> Tree:
        """Return a condition of a TrainJob."""
        conditions = self.cluster.get(f"--namespace={self.namespace}", "trainjob", job)["status"]["conditions"]
        return next(one for one in conditions if one["type"] == kind)
