"""A cluster's objects by plain requests: many small looks, cheaper than kubectl on a machine with three clusters."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.errors import LabError

if TYPE_CHECKING:
    from lab.cluster import Cluster

Tree = dict[str, Any]

_GROUPS = {
    "api/v1": ("namespaces", "pods", "secrets", "events", "configmaps", "nodes", "services"),
    "apis/trainer.kubeflow.org/v1alpha1": ("trainjobs", "trainingruntimes", "clustertrainingruntimes"),
    "apis/kubeflow.org/v1": ("pytorchjobs", "tfjobs", "xgboostjobs", "paddlejobs", "jaxjobs"),
    "apis/kubeflow.org/v2beta1": ("mpijobs",),
    "apis/jobset.x-k8s.io/v1alpha2": ("jobsets",),
    "apis/autoscaling/v2": ("horizontalpodautoscalers",),
    "apis/batch/v1": ("jobs",),
    "apis/scheduling.k8s.io/v1": ("priorityclasses",),
    "apis/kueue.x-k8s.io/v1beta2": (
        "workloads",
        "clusterqueues",
        "localqueues",
        "resourceflavors",
        "workloadpriorityclasses",
        "admissionchecks",
        "multikueueclusters",
        "multikueueconfigs",
        "topologies",
        "cohorts",
    ),
}
_ROOTS = {plural: root for root, plurals in _GROUPS.items() for plural in plurals}
_IRREGULAR = {"priorityclass": "priorityclasses", "workloadpriorityclass": "workloadpriorityclasses"}
_MERGE = "application/merge-patch+json"
_APPLY = "application/apply-patch+yaml"


class RefusedError(Exception):
    """The API server refused a request."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Api:
    """The administrator's view of one cluster. `namespace` is "" for what lives in none."""

    cluster: Cluster

    def get(self, plural: str, namespace: str, name: str) -> Tree | None:
        """Return an object, None when there is none."""
        try:
            return self._send("GET", _path(plural, namespace, name))
        except RefusedError as error:
            if error.code == 404:
                return None
            raise

    def list(self, plural: str, namespace: str = "", *, labels: str = "", fields: str = "") -> list[Tree]:
        """Return objects of a namespace or of all; `labels` and `fields` are selectors."""
        query = f"?labelSelector={_quoted(labels)}&fieldSelector={_quoted(fields)}"
        items: list[Tree] = self._send("GET", _path(plural, namespace) + query)["items"]
        return items

    def create(self, tree: Tree) -> Tree:
        """Create an object as it is."""
        plural, meta = _plural(tree["kind"]), tree["metadata"]
        return self._send("POST", _path(plural, meta.get("namespace", "")), tree)

    def apply(self, *trees: Tree) -> None:
        """Apply objects, server-side."""
        for tree in trees:
            meta = tree["metadata"]
            path = _path(_plural(tree["kind"]), meta.get("namespace", ""), meta["name"])
            self._send("PATCH", path + "?fieldManager=test&force=true", tree, _APPLY)

    def patch(self, plural: str, namespace: str, name: str, patch: Tree, *, part: str = "") -> Tree:
        """Merge into an object; `part` is a subresource."""
        path = _path(plural, namespace, name) + (f"/{part}" if part else "")
        return self._send("PATCH", path, patch, _MERGE)

    def delete(self, plural: str, namespace: str, name: str) -> None:
        """Delete an object, if it is there, without waiting for its end."""
        try:
            self._send("DELETE", _path(plural, namespace, name))
        except RefusedError as error:
            if error.code != 404:
                raise

    def _send(self, method: str, path: str, tree: Tree | None = None, content: str = "application/json") -> Tree:
        try:
            with self.cluster.connection() as connection:
                found: Tree = json.loads(
                    connection.send(method, path, None if tree is None else json.dumps(tree), content)
                )
        except LabError as error:
            if answer := re.match(r"\w+ \S+: (\d{3}) (.*)", str(error), re.DOTALL):
                raise RefusedError(int(answer[1]), answer[2]) from error
            raise
        return found


def _path(plural: str, namespace: str, name: str = "") -> str:
    parts = [_ROOTS[plural], *(("namespaces", namespace) if namespace else ()), plural, *((name,) if name else ())]
    return "/" + "/".join(parts)


def _plural(kind: str) -> str:
    word = kind.lower()
    return _IRREGULAR.get(word) or (f"{word[:-1]}ies" if word.endswith("gy") else f"{word}s")


def _quoted(selector: str) -> str:
    return selector.replace("=", "%3D").replace(",", "%2C").replace("/", "%2F")
