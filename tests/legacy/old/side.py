"""A cluster with a node on which ours or training-operator v1.9.3 runs the older kinds, and one who uses it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab import profiles, training_operator
from lab.engines.build import build_missing
from lab.paths import REPOSITORY
from lab.processes import wait_for
from tests.fleet.api import Api
from tests.sdk.official import documents
from tests.sdk.official.sdk import Package, Sdk
from tests.sdk.official.side import kubeconfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lab.cluster import Cluster

Tree = dict[str, Any]

USER = documents.USER
OLD = Package(
    REPOSITORY / "build/legacy-sdk",
    "from kubeflow.training import *\n",
    "client = TrainingClient(namespace=NAMESPACE)\n",
)
_PATIENCE = 180.0
_MEET = Path(__file__).with_name("meet.py")


@dataclass(frozen=True)
class Side:
    """A cluster, its administrator's view, and a practitioner with the old SDK."""

    cluster: Cluster
    api: Api
    sdk: Sdk

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        wait_for(what, holds, seconds=_PATIENCE)

    def apply(self, path: Path) -> None:
        """Apply a file as the practitioner."""
        self.cluster.kubectl("apply", f"--namespace={USER}", f"--filename={path}")


@contextmanager
def on(cluster: Cluster) -> Iterator[Side]:
    """Let somebody use a cluster that serves the older kinds."""
    cluster.apply(*documents.home(USER), *_user())
    with Sdk(kubeconfig(cluster), USER, OLD) as sdk:
        yield Side(cluster, Api(cluster), sdk)


@contextmanager
def old() -> Iterator[Side]:
    """Bring up a cluster of training-operator's."""
    build_missing(["training-operator"])
    with profiles.node_with(training_operator.install, "legacy-old") as cluster, on(cluster) as side:
        yield side


def _user() -> list[Tree]:
    """Return who uses it, with the rights that the old SDK needs and no more, and the program of the samples."""
    rules = [
        ("kubeflow.org", [*training_operator.KINDS.values()], ["create", "get", "list", "patch", "delete"]),
        ("", ["pods"], ["get", "list"]),
        ("", ["pods/log"], ["get"]),
        ("", ["events"], ["list"]),
    ]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": USER, "namespace": USER},
        "rules": [{"apiGroups": [group], "resources": kinds, "verbs": verbs} for group, kinds, verbs in rules],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": USER, "namespace": USER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": USER},
        "subjects": [{"kind": "ServiceAccount", "name": USER, "namespace": USER}],
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": USER, "namespace": USER}}
    programs = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "programs", "namespace": USER},
        "data": {"meet.py": _MEET.read_text()},
    }
    return [account, role, binding, programs]
