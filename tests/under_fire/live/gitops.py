"""Argo CD and Flux as an API server meets them: what they compare, and the requests that they send.

Read from their sources (gitops-engine's `diff` and `sync`, Flux's `ssa`), with `kubectl` where they use its code.
Stricter than they are in one thing: Argo CD's server-side diff leaves out what webhooks change, unless told not to.
"""

from __future__ import annotations

import copy
import json
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from lab.errors import CommandError
from tests.fleet import objects

if TYPE_CHECKING:
    from tests.fleet.objects import Tree
    from tests.fleet.one_cluster.team import Team

_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_PLURALS = {"TrainJob": "trainjobs", "ClusterTrainingRuntime": "clustertrainingruntimes"}


@dataclass(frozen=True)
class Ignored:
    """Argo CD's `ignoreDifferences` of one kind."""

    kind: str
    jq_path_expressions: tuple[str, ...] = ()

    def without(self, tree: Tree) -> Tree:
        """Return an object without what is ignored, as Argo CD makes it: `del` of each expression."""
        if tree["kind"] != self.kind or not self.jq_path_expressions:
            return tree
        program = " | ".join(f"del({expression})" for expression in self.jq_path_expressions)
        done = subprocess.run(["jq", program], input=json.dumps(tree), capture_output=True, check=True, text=True)
        left: Tree = json.loads(done.stdout)
        return left


class Tool(ABC):
    """What keeps a cluster as a repository says, for one team."""

    def __init__(self, team: Team) -> None:
        self.team = team

    @abstractmethod
    def desired(self, file: Tree) -> Tree:
        """Return a file as the tool sends it, with its own marks."""

    @abstractmethod
    def drift(self, file: Tree) -> dict[str, Any]:
        """Return what differs between a file and the cluster in the tool's eyes, by path, as (wanted, there)."""

    @abstractmethod
    def sync(self, file: Tree) -> None:
        """Bring a file to the cluster; a `LabError` is the refusal."""

    def live(self, file: Tree) -> Tree:
        return self.team.get(_PLURALS[file["kind"]], file["metadata"]["name"])


class ArgoClientSide(Tool):
    """Argo CD as it comes: `kubectl apply` with a three-way merge, and a diff made the same way."""

    command: tuple[str, ...] = ("apply",)

    def __init__(self, team: Team, ignored: Ignored | None = None) -> None:
        super().__init__(team)
        self.ignored = ignored or Ignored("TrainJob")

    def desired(self, file: Tree) -> Tree:
        return _marked(file, "argocd.argoproj.io/tracking-id", f"app:{file['kind']}/{file['metadata']['name']}")

    def drift(self, file: Tree) -> dict[str, Any]:
        wanted, there = self.ignored.without(self.desired(file)), self.ignored.without(self.live(file))
        applied = there["metadata"]["annotations"].get(_APPLIED)
        before = wanted if applied is None else self.ignored.without(json.loads(applied))
        return differences(merged(there, three_way(before, wanted, there)), there)

    def sync(self, file: Tree) -> None:
        self.team.cluster.kubectl(*self.command, "-f", "-", stdin=json.dumps(self.desired(file)))


class ArgoReplace(ArgoClientSide):
    """Argo CD with `Replace=true`."""

    def sync(self, file: Tree) -> None:
        there = self.team.find(_PLURALS[file["kind"]], file["metadata"]["name"])
        word = "create" if there is None else "replace"
        self.team.wait("the file to be taken", lambda: self._is_taken(word, file))

    def _is_taken(self, word: str, file: Tree) -> bool:
        """Say whether a file was taken: `kubectl replace` reads first, and a status may be written in between."""
        try:
            self.team.cluster.kubectl(word, "-f", "-", stdin=json.dumps(self.desired(file)))
        except CommandError as error:
            if "the object has been modified" not in str(error):
                raise
            return False
        return True


class ServerSide(Tool):
    """Server-side apply, by force, and a diff with what a dry run of it comes to."""

    manager: str
    mark: str

    def desired(self, file: Tree) -> Tree:
        return _marked(file, self.mark, "app")

    def drift(self, file: Tree) -> dict[str, Any]:
        return differences(_own(self._apply(file, dryRun="All")), _own(self.live(file)))

    def sync(self, file: Tree) -> None:
        self._apply(file)

    def _apply(self, file: Tree, **more: str) -> Tree:
        place = "" if file["kind"].startswith("Cluster") else f"/namespaces/{self.team.namespace}"
        query = urlencode({"fieldManager": self.manager, "force": "true", **more})
        path = f"/apis/{objects.TRAINER}{place}/{_PLURALS[file['kind']]}/{file['metadata']['name']}?{query}"
        body = json.dumps(self.desired(file))
        done: Tree = json.loads(self.team.connection.send("PATCH", path, body, "application/apply-patch+yaml"))
        return done


class ArgoServerSide(ServerSide):
    """Argo CD with `ServerSideApply=true` and its server-side diff."""

    manager, mark = "argocd-controller", "argocd.argoproj.io/tracking-id"


class Flux(ServerSide):
    """Flux's kustomize-controller, which finds drift in the same way."""

    manager, mark = "kustomize-controller", "kustomize.toolkit.fluxcd.io/name"


def _marked(file: Tree, annotation: str, value: str) -> Tree:
    marked = copy.deepcopy(file)
    marked["metadata"].setdefault("annotations", {})[annotation] = value
    return marked


def _own(tree: Tree) -> Tree:
    """Return an object without what the API server writes about it."""
    server = ("managedFields", "resourceVersion", "generation", "creationTimestamp", "uid")
    metadata = {name: value for name, value in tree["metadata"].items() if name not in server}
    return {**{name: value for name, value in tree.items() if name != "status"}, "metadata": metadata}


def three_way(before: Tree, wanted: Tree, there: Tree) -> Tree:
    """Return the JSON merge patch of `kubectl apply`: what is new or other in a file, and what went from it."""
    patch: Tree = {}
    for name, value in wanted.items():
        if isinstance(value, dict) and isinstance(there.get(name), dict):
            earlier = before.get(name)
            inner = three_way(earlier if isinstance(earlier, dict) else {}, value, there[name])
            if inner:
                patch[name] = inner
        elif name not in there or there[name] != value:
            patch[name] = value
    patch.update({name: None for name in before if name not in wanted and name in there})
    return patch


def merged(tree: Any, patch: Any) -> Any:
    """Return what a JSON merge patch makes of something."""
    if not isinstance(patch, dict):
        return patch
    result = dict(tree) if isinstance(tree, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def differences(wanted: Any, there: Any, path: str = "") -> dict[str, Any]:
    """Return where two trees differ, with both sides."""
    if isinstance(wanted, dict) and isinstance(there, dict):
        found: dict[str, Any] = {}
        for name in wanted.keys() | there.keys():
            found |= differences(wanted.get(name), there.get(name), f"{path}.{name}")
        return found
    return {} if wanted == there else {path: (wanted, there)}
