"""Where a script is played on real engines: a namespace of its own on a cluster, and when a step has come to rest."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

from lab import kueue
from lab.errors import LabError
from tests.simulation.playing import QUEUE, TRAINER
from tests.simulation.recordings import Observation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.connection import Connection
    from tests.simulation.scripts import Step
    from trainplane.kube.testing.storage import Tree

QUIET_SECONDS: Final = 3.0
"""How long nothing may change before a step counts as done, if all stands as the model, or an earlier record, says."""
UNEXPECTED_SECONDS: Final = 30.0
"""The same if it stands otherwise: on a busy machine an engine may take long to begin."""
MERGE: Final = "application/merge-patch+json"


def play(
    stage: Any, steps: Sequence[Step], expected: Sequence[Observation], quiet_seconds: float = QUIET_SECONDS
) -> list[Observation]:
    """Do the steps of a script one by one; return the state after each. A state that is `expected` is accepted sooner.

    A stage has a method for each verb, which returns False for what was refused, and `state`.
    """
    observations: list[Observation] = []
    for place, (verb, *about) in enumerate(steps):
        refused = getattr(stage, verb)(*about) is False
        state = _rest(stage, expected[place].state if place < len(expected) else None, quiet_seconds)
        observations.append(Observation([verb, *about], refused, state))
    return observations


def _rest(stage: Any, expected: Tree | None, quiet_seconds: float) -> Tree:
    """Return how things stand when nothing has changed for a while: a short one if they are as expected."""
    state: Tree = stage.state()
    since = time.monotonic()
    while True:
        time.sleep(0.2)
        now: Tree = stage.state()
        if now != state:
            state, since = now, time.monotonic()
        quiet = time.monotonic() - since
        if quiet >= (quiet_seconds if state == expected else UNEXPECTED_SECONDS):
            return state


class Stage:
    """A namespace of a script's own on a cluster."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection = connection
        self.namespace = namespace
        self.kueue = f"/apis/kueue.x-k8s.io/{kueue.api_version()}"
        self.jobs = f"/apis/{TRAINER}/namespaces/{namespace}/trainjobs"
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})

    # -- talking

    def send(self, method: str, path: str, body: Tree | None = None) -> Any:
        """Send a request; return what was answered. Raises LabError."""
        kind = MERGE if method == "PATCH" else "application/json"
        return json.loads(self._connection.send(method, path, None if body is None else json.dumps(body), kind))

    def find(self, path: str) -> Tree | None:
        """Return an object, None if it is not there."""
        try:
            found: Tree = self.send("GET", path)
        except LabError as error:
            if ": 404 " in str(error):
                return None
            raise
        return found

    def all(self, prefix: str, plural: str) -> list[Tree]:
        """Return the objects of a kind."""
        items: list[Tree] = self.send("GET", f"{prefix}/namespaces/{self.namespace}/{plural}")["items"]
        return items

    def may(self, method: str, path: str, body: Tree | None = None) -> bool:
        """Send, and return whether it was taken: not if it is refused, or about what is not there."""
        try:
            self.send(method, path, body)
        except LabError as error:
            if any(f": {code} " in str(error) for code in (403, 404, 422)):
                return False
            raise
        return True

    # -- Kueue

    def add_queue(self, **spec: Any) -> None:
        """Make the script's queue here."""
        queues = self._kueue_object("ClusterQueue", self.namespace, {"namespaceSelector": {}, **spec})
        self.send("POST", f"{self.kueue}/clusterqueues", queues)
        local = self._kueue_object("LocalQueue", QUEUE, {"clusterQueue": self.namespace})
        self.send("POST", f"{self.kueue}/namespaces/{self.namespace}/localqueues", local)

    def change_queue(self, **spec: Any) -> None:
        """Give the script's queue other settings."""
        self.send("PATCH", f"{self.kueue}/clusterqueues/{self.namespace}", {"spec": spec})

    def workloads(self) -> list[Tree]:
        """Return the Workloads of the script."""
        return self.all(self.kueue, "workloads")

    def workload_path(self, workload: Tree) -> str:
        """Return where a Workload is."""
        return f"{self.kueue}/namespaces/{self.namespace}/workloads/{workload['metadata']['name']}"

    def _kueue_object(self, kind: str, name: str, spec: Tree) -> Tree:
        api = self.kueue.removeprefix("/apis/")
        return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}


def quota_of(flavors: dict[str, int]) -> list[Tree]:
    """Return the resource groups of a ClusterQueue whose quota is CPUs: a pod wants one."""
    offered = [
        {"name": name, "resources": [{"name": "cpu", "nominalQuota": str(pods)}]} for name, pods in flavors.items()
    ]
    return [{"coveredResources": ["cpu"], "flavors": offered}]


def resource_flavor(name: str) -> Tree:
    """Return a flavor whose nodes have a label that says so."""
    api = f"kueue.x-k8s.io/{kueue.api_version()}"
    spec = {"nodeLabels": {"flavor": name}}
    return {"apiVersion": api, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def stamp() -> str:
    """Return the time of day as objects have it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
