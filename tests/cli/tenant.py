"""A tenant of a real cluster: a namespace, an account with a Role in it and no more, and commands as it types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from lab import accounts
from lab.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster

Tree = dict[str, Any]

SCRIPTS: Final = Path(sys.executable).parent
"""Where the installed `trainplane` and `kubectl-trainjob` are."""
PATIENCE: Final = 180
"""Seconds that a command may take on a busy machine of two cores."""
RIGHTS: Final = (
    {"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"], "verbs": ["*"]},
    {
        "apiGroups": ["trainer.kubeflow.org"],
        "resources": ["trainingruntimes"],
        "verbs": ["get", "list", "watch"],
    },
    {
        "apiGroups": [""],
        "resources": ["pods", "pods/log", "events", "configmaps"],
        "verbs": ["get", "list", "watch"],
    },
)
"""What a practitioner is given of a namespace: nothing of nodes, of other namespaces or of the cluster."""


@dataclass(frozen=True)
class Tenant:
    """See the module's docstring."""

    cluster: Cluster
    namespace: str
    kubeconfig: Path
    """Its current context is the tenant's, in its namespace."""

    def apply(self, *documents: Tree) -> None:
        """Apply objects in the namespace, as an admin."""
        for document in documents:
            document["metadata"].setdefault("namespace", self.namespace)
        self.cluster.apply(*documents)

    def run(self, *words: str, code: int = 0, program: str = "trainplane", **environment: str) -> str:
        """Run the installed program with the tenant's rights, and return what it printed on standard output."""
        done = self.start(*words, program=program, **environment)
        assert done.returncode == code, f"{words} ended with {done.returncode}: {done.stdout}{done.stderr}"[:4000]
        return done.stdout

    def start(self, *words: str, program: str = "trainplane", **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the installed program with the tenant's rights to its end."""
        with self.begin(*words, program=program, **environment) as running:
            try:
                printed, said = running.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                running.kill()
                raise
        return subprocess.CompletedProcess(words, running.returncode, printed, said)

    def begin(self, *words: str, program: str = "trainplane", **environment: str) -> subprocess.Popen[str]:
        """Begin the installed program with the tenant's rights."""
        return subprocess.Popen(
            [SCRIPTS / program, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(**environment),
        )

    def environment(self, **others: str) -> dict[str, str]:
        """Return the environment of the tenant's commands; what is installed has its bytecode, so ours has too."""
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**inherited, "KUBECONFIG": str(self.kubeconfig), **others}

    def tree(self, *words: str, code: int = 0) -> Any:
        """Run a command and return the JSON that it printed."""
        return json.loads(self.run(*words, code=code))

    def pod(self, job: str, index: int, phase: str = "Running") -> str:
        """Wait until the pod of a node is in a phase, and return its name."""
        labels = f"jobset.sigs.k8s.io/jobset-name={job},batch.kubernetes.io/job-completion-index={index}"
        found: list[str] = []

        def is_there() -> bool:
            words = (f"--namespace={self.namespace}", f"--selector={labels}", f"--field-selector=status.phase={phase}")
            found[:] = self.cluster.kubectl("get", "pods", *words, "--output=name").stdout.split()
            return bool(found)

        wait_for(f"node {index} of {job}: {phase}", is_there, seconds=PATIENCE)
        return found[0]

    def let_go(self, job: str, index: int) -> None:
        """Let the pod of a node go on: it waits for a file (`tests.e2e.shell.WAITING`)."""
        self.cluster.touch(self.namespace, self.pod(job, index), "/tmp/go")


def wait_allowed(cluster: Cluster, who: str, verb: str, resource: str, namespace: str) -> None:
    """Wait until the API server goes by a role that was just written: it reads roles by watching them."""
    words = ("auth", "can-i", verb, resource, f"--as={who}", f"--namespace={namespace}")
    wait_for(f"{who} to be allowed", lambda: cluster.kubectl(*words, check=False).code == 0, seconds=PATIENCE)


@contextmanager
def tenant_of(cluster: Cluster, name: str = "team") -> Iterator[Tenant]:
    """Make a namespace with its tenant; it is deleted afterwards, without waiting."""
    namespace = f"{name}-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", namespace)
    cluster.apply(*_rights(namespace))
    wait_allowed(cluster, f"system:serviceaccount:{namespace}:{namespace}", "list", "trainjobs", namespace)
    kubeconfig = accounts.kubeconfig(cluster, namespace, namespace)
    tree = yaml.safe_load(kubeconfig.read_text())
    tree["contexts"][0]["context"]["namespace"] = namespace
    kubeconfig.write_text(yaml.safe_dump(tree, sort_keys=False))
    yield Tenant(cluster, namespace, kubeconfig)
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")


def _rights(namespace: str) -> list[Tree]:
    """Return the tenant's account, which is called as its namespace, and its Role."""
    meta = {"name": namespace, "namespace": namespace}
    api = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": meta, "rules": list(RIGHTS)},
        {
            "apiVersion": f"{api}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": api, "kind": "Role", "name": namespace},
            "subjects": [{"kind": "ServiceAccount", **meta}],
        },
    ]
