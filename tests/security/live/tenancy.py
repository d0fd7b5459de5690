"""A namespace with a tenant in it, who has a kubeconfig of its own and the rights that a namespace's users get."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.engines import binary
from lab.processes import run
from tests.integration.operator.test_operator import find, until

if TYPE_CHECKING:
    from pathlib import Path

    from lab.cluster import Cluster
    from lab.processes import Result

Tree = dict[str, Any]

USER = "tenant"
RULES = (
    ("trainer.kubeflow.org", ["trainjobs"], ["*"]),
    ("", ["configmaps"], ["*"]),
    ("", ["secrets"], ["create", "delete"]),
    ("jobset.x-k8s.io", ["jobsets"], ["get", "list", "watch"]),
    ("", ["pods", "events"], ["get", "list", "watch"]),
)
"""What a tenant may do in its own namespace: everything with TrainJobs and ConfigMaps, and leave Secrets there."""


@dataclass(frozen=True)
class Tenancy:
    """A tenant's view of a cluster; what the administrator does is asked of `cluster`."""

    cluster: Cluster
    namespace: str
    kubeconfig: Path

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> Result:
        """Run kubectl as the tenant."""
        command = [binary("kubectl"), f"--kubeconfig={self.kubeconfig}", "-n", self.namespace, *arguments]
        return run(command, stdin=stdin, check=check)

    def is_granted(self) -> bool:
        """Tell whether the API server knows the tenant's rights."""
        return self.kubectl("auth", "can-i", "create", "trainjobs.trainer.kubeflow.org", check=False).code == 0

    def create(self, document: Tree) -> Tree:
        """Create an object as the tenant, and return it."""
        made = self.kubectl("create", "-f", "-", "-o", "json", stdin=json.dumps(document))
        found: Tree = json.loads(made.stdout)
        return found

    def patch(self, kind: str, name: str, change: Tree, *options: str, check: bool = True) -> Result:
        """Change an object as the tenant."""
        return self.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps(change), *options, check=check)

    def find(self, kind: str, name: str) -> Tree | None:
        """Return an object of the namespace, as the administrator sees it."""
        return find(self.cluster, self.namespace, kind, name)

    def wait(self, kind: str, name: str) -> Tree:
        """Wait for an object of the namespace."""
        found: Tree = until(lambda: self.find(kind, name), f"{kind} {name}")
        return found

    def told(self, name: str, text: str) -> str:
        """Wait until an Event of a TrainJob says something, and return all that it says."""

        def said() -> str:
            events = self.cluster.get("events", "-n", self.namespace)["items"]
            messages = [one.get("message", "") for one in events if one["involvedObject"]["name"] == name]
            return next((message for message in messages if text in message), "")

        found: str = until(said, f"an Event of {name} that says {text!r}")
        return found


def settle_in(cluster: Cluster) -> Tenancy:
    """Return a tenant with a new namespace of its own; what it leaves there goes with the cluster."""
    name = f"tenant-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", name)
    cluster.apply(*grant(name))
    tenancy = Tenancy(cluster, name, cluster.user(USER, USER))
    until(tenancy.is_granted, "the tenant's rights: the API server reads roles a moment after they are written")
    return tenancy


def grant(namespace: str) -> tuple[Tree, Tree]:
    """Return the role of a namespace's tenant, and its binding."""
    api, meta = "rbac.authorization.k8s.io", {"name": USER, "namespace": namespace}
    rules = [{"apiGroups": [group], "resources": plurals, "verbs": verbs} for group, plurals, verbs in RULES]
    role = {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": meta, "rules": rules}
    binding = {
        "apiVersion": f"{api}/v1",
        "kind": "RoleBinding",
        "metadata": meta,
        "roleRef": {"kind": "Role", "name": USER, "apiGroup": api},
        "subjects": [{"kind": "User", "name": USER, "apiGroup": api}],
    }
    return role, binding


def controlled_by(job: Tree) -> Tree:
    """Return the reference that makes an object a TrainJob's: whoever can read the TrainJob can write it."""
    meta = job["metadata"]
    identity = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": meta["name"], "uid": meta["uid"]}
    return {**identity, "controller": True}
