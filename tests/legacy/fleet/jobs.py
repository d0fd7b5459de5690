"""Jobs of one kind in a team's queue, what becomes of them on each cluster, and what the hub shows."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab import kwok
from lab.errors import LabError
from tests.fleet.api import RefusedError
from tests.fleet.objects import PRIORITY_LABEL, QUEUE, QUEUE_LABEL
from tests.fleet.team import true_condition, wait_until

if TYPE_CHECKING:
    from tests.fleet.team import Team
    from trainplane.api.legacy.kinds import Kind

Tree = dict[str, Any]

_ROOT = "/apis/hub.trainplane.dev/v1alpha1"
_TOLERATED = {"key": kwok.TAINT["key"], "operator": "Exists"}


def simulated(kind: Kind, name: str, namespace: str, *, cpu: str = "1", priority: str = "", **policy: Any) -> Tree:
    """Return a job with a pod of each of two types, or of the only one, which run on simulated nodes until ended."""
    template = {
        "metadata": {"annotations": {kwok.LASTS: "24h"}},
        "spec": {
            "tolerations": [_TOLERATED],
            "nodeSelector": {"type": "kwok"},
            "containers": [
                {
                    "name": kind.container,
                    "image": "registry.invalid/train:1",
                    "command": ["train"],
                    "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}},
                }
            ],
        },
    }
    chosen = {one: {"replicas": 1, "template": template} for one in (kind.types[0], "Worker")}
    labels = {QUEUE_LABEL: QUEUE} | ({PRIORITY_LABEL: priority} if priority else {})
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"runPolicy": policy, kind.specs: chosen},
    }


@dataclass(frozen=True)
class Jobs:
    """A team's jobs of a kind."""

    team: Team
    kind: Kind

    # -- what they do ---------------------------------------------------------------------------------------------

    def submit(self, name: str, *, on: str = "hub", **job: Any) -> Tree:
        return self.create(simulated(self.kind, name, self.team.namespace, **job), on=on)

    def create(self, document: Tree, *, on: str = "hub") -> Tree:
        """Create a document in the team's namespace and queue."""
        labels = document["metadata"].get("labels", {}) | {QUEUE_LABEL: QUEUE}
        metadata = document["metadata"] | {"namespace": self.team.namespace, "labels": labels}
        return self.team.api(on).create(document | {"metadata": metadata})

    def end(self, name: str, *, on: str) -> None:
        """Let a job's simulated pods end well; the first may end the job, and so take the others with it."""
        status = {"status": {"phase": "Succeeded"}}
        for pod in self.pods(name, on=on):
            try:
                self.team.api(on).patch("pods", self.team.namespace, pod["metadata"]["name"], status, part="status")
            except RefusedError as error:
                if error.code != 404:
                    raise

    # -- what is seen ---------------------------------------------------------------------------------------------

    def get(self, name: str, *, on: str = "hub") -> Tree | None:
        return self.team.api(on).get(self.kind.plural, self.team.namespace, name)

    def holds(self, name: str, condition: str, *, on: str = "hub") -> bool:
        return true_condition(self.get(name, on=on), condition) is not None

    def is_suspended(self, name: str, *, on: str = "hub") -> bool:
        job = self.get(name, on=on) or {}
        return bool((job["spec"].get("runPolicy") or {}).get("suspend"))

    def workload(self, name: str, *, on: str = "hub") -> Tree | None:
        """Return the Workload of a job."""
        found = self.team.api(on).list("workloads", self.team.namespace)
        start = f"{self.kind.singular}-{name}-"
        return next((one for one in found if one["metadata"]["name"].startswith(start)), None)

    def pods(self, name: str, *, on: str) -> list[Tree]:
        """Return a job's pods that are not on their way out."""
        labels = f"training.kubeflow.org/job-name={name},training.kubeflow.org/operator-name={self.kind.operator}"
        found = self.team.api(on).list("pods", self.team.namespace, labels=labels)
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    # -- through the hub's view -----------------------------------------------------------------------------------

    def answer(self, name: str = "", part: str = "") -> str:
        """Return what the hub's view says of a job, or lists; nothing where it refuses."""
        path = "/".join(word for word in (self.kind.plural, name, part) if word)
        with self.team.fleet.hub.connection() as connection, contextlib.suppress(LabError):
            return connection.send("GET", f"{_ROOT}/namespaces/{self.team.namespace}/{path}").decode()
        return ""

    def shown(self, name: str = "", part: str = "") -> Tree:
        """Return what the hub's view says; empty where it refuses, as it does until it knows a job."""
        found: Tree = json.loads(self.answer(name, part) or "{}")
        return found

    def log(self, name: str, query: str = "") -> list[str]:
        """Return the lines of a log; empty while there is none."""
        return self.answer(name, f"log?{query}").splitlines()

    # -- waiting --------------------------------------------------------------------------------------------------

    def wait(self, what: str, holds: Any) -> None:
        wait_until(f"{self.kind.name} {what}", holds, log=self.team.fleet.hub)

    def wait_condition(self, name: str, condition: str, *, on: str = "hub") -> None:
        self.wait(f"{name} to be {condition} on {on}", lambda: self.holds(name, condition, on=on))

    def wait_gone(self, name: str, *, on: str) -> None:
        """Wait until a cluster has neither job, Workload nor pods of that name."""
        self.wait(
            f"{name} to be gone from {on}",
            lambda: not (self.get(name, on=on) or self.workload(name, on=on) or self.pods(name, on=on)),
        )
