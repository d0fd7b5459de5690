"""An admin with a cluster, helm and kubectl."""

from __future__ import annotations

import base64
import http.client
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab import chart
from lab.engines import binary
from lab.helm import helm
from lab.images import reference
from lab.paths import REPOSITORY
from lab.processes import run, wait_for

if TYPE_CHECKING:
    from lab.cluster import Cluster

CHART = chart.FOLDER
RELEASE = chart.RELEASE
NAMESPACE = chart.NAMESPACE
MANAGER = f"{RELEASE}-controller-manager"
NAMESPACED = Path(__file__).parent / "values/namespaced.yaml"
MONITORED = tuple(f"--set={name}.enabled=true" for name in ("serviceMonitor", "prometheusRule", "grafanaDashboard"))
"""Helm's options for all that monitors the operator."""
OPERATOR = f'namespace="{NAMESPACE}", job="{MANAGER}"'
"""The operator's targets, in PromQL."""
RUNTIME = "two-pods"
WHO = "import os; print('node', os.environ.get('JOB_COMPLETION_INDEX', '0'))"
"""What a node of that runtime runs."""


@dataclass(frozen=True)
class Admin:
    """What an admin does with the release."""

    cluster: Cluster
    namespace: str = NAMESPACE
    """Where the release is."""
    jobs: str = "default"
    """Where users' jobs are."""
    kind: str = "ClusterTrainingRuntime"
    """The kind of their runtimes."""

    def helm(self, *arguments: str) -> str:
        return helm(self.cluster, *arguments, f"--namespace={self.namespace}").stdout

    def install(self, *values: str) -> None:
        chart.install(self.cluster, *values, namespace=self.namespace)
        self.wait_answering()

    def wait_answering(self) -> None:
        """Wait until webhooks answer: pods are ready a moment before their Service leads to them."""
        wrong = train_job("probe", 1, "no-such-runtime", self.kind)
        create = ("create", "--dry-run=server", "-n", self.jobs, "-f", "-")

        def answered() -> bool:
            return "denied the request" in self.cluster.kubectl(*create, stdin=wrong, check=False).stderr

        wait_for("the webhooks", answered, seconds=60)

    def uninstall(self) -> None:
        self.helm("uninstall", RELEASE, "--wait", "--timeout=60s")

    def make_namespace(self) -> None:
        chart.make_namespace(self.cluster, self.namespace)

    def bring_certificate(self) -> str:
        """Put a certificate of the cluster's authority where the operator finds it; return that authority."""
        pair = self.cluster.issue_serving("tenant", MANAGER, (f"{MANAGER}.{self.namespace}.svc",))
        files = (f"--cert={pair.certificate}", f"--key={pair.key}", f"--namespace={self.namespace}")
        self.cluster.kubectl("create", "secret", "tls", f"{RELEASE}-webhook-cert", *files)
        return base64.b64encode(self.cluster.authority.read_bytes()).decode()

    def has(self, kind: str, name: str) -> bool:
        return self.cluster.kubectl("get", kind, name, check=False).code == 0

    def token(self, account: str) -> str:
        """Return a new token of an account of the default namespace: answers about old ones are remembered."""
        return self.cluster.kubectl("create", "token", account).stdout.strip()

    def metrics_status(self, token: str) -> int:
        """Ask for metrics through the Service and return the status of the answer."""
        address = self.cluster.get("service", MANAGER, "-n", NAMESPACE)["spec"]["clusterIP"]
        context = ssl._create_unverified_context()  # noqa: S323 whose certificate it is, webhooks prove
        with self.cluster.sandbox.entered():
            connection = http.client.HTTPSConnection(address, 8443, timeout=60, context=context)
            connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"} if token else {})
            status = connection.getresponse().status
            connection.close()
        return status

    def add_runtime(self, name: str = RUNTIME, policy: dict[str, Any] | None = None, says: str = WHO) -> None:
        """Add a runtime whose nodes say who they are: through the webhook, as every runtime that is not shipped."""
        container = {
            "name": "node",
            "image": reference("python"),
            "imagePullPolicy": "Never",
            "command": ["python3", "-c", says],
        }
        job = {
            "name": "node",
            "template": {
                "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                "spec": {"template": {"spec": {"containers": [container]}}},
            },
        }
        self.cluster.apply(
            {
                "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "kind": self.kind,
                "metadata": {"name": name} | ({"namespace": self.jobs} if self.kind == "TrainingRuntime" else {}),
                "spec": {
                    "mlPolicy": {"numNodes": 1, **(policy or {})},
                    "template": {"spec": {"replicatedJobs": [job]}},
                },
            }
        )

    def train(self, name: str, nodes: int = 2) -> None:
        """Create a TrainJob and wait until it is complete."""
        self.cluster.kubectl("create", "-n", self.jobs, "-f", "-", stdin=train_job(name, nodes, kind=self.kind))
        wait_for(f"TrainJob {name}", lambda: "Complete" in self.conditions(name), seconds=90)

    def conditions(self, name: str) -> list[str]:
        """Return the conditions of a TrainJob that are True."""
        status = self.cluster.get("trainjob", name, "-n", self.jobs).get("status", {})
        return [one["type"] for one in status.get("conditions", []) if one["status"] == "True"]

    def requests(self) -> list[dict[str, Any]]:
        """Return what the operator has asked of the API server, by its audit log."""
        account = f"system:serviceaccount:{self.namespace}:{MANAGER}"
        return [one for one in self.cluster.audit() if one["user"]["username"] == account]


def typed(cluster: Cluster, commands: str) -> str:
    """Type commands in the checkout's folder, with kubectl and helm at hand, and return what they say."""
    tools = f"{Path(binary('kubectl')).parent}:{Path(binary('helm')).parent}:{os.environ['PATH']}"
    homes = {f"HELM_{name}_HOME": str(cluster.folder / "helm" / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
    environment = {"KUBECONFIG": str(cluster.kubeconfig), "PATH": tools, **homes}
    return run(["sh", "-euc", f"cd {REPOSITORY}\n{commands}"], environment=environment).output


def train_job(name: str, nodes: int, runtime: str = RUNTIME, kind: str = "ClusterTrainingRuntime") -> str:
    """Return a TrainJob as a user writes it."""
    return f"""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: {name}}}
spec:
  runtimeRef: {{kind: {kind}, name: {runtime}}}
  trainer: {{numNodes: {nodes}}}
"""
