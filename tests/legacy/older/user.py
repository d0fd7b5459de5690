"""A user of both shapes, who also plays the kubelet: pods run and end when a test says so."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from typing import Any, Final, Literal

from tests.e2e.user import User

Tree = dict[str, Any]

_TODAY: Final = "/apis/trainer.kubeflow.org/v1alpha1"
_OLDER: Final = "/apis/kubeflow.org/v2alpha1"
_GROUPS: Final = {
    "trainjobs": _TODAY,
    "trainingruntimes": _TODAY,
    "clustertrainingruntimes": _TODAY,
    "v2alpha1trainjobs": _OLDER,
    "v2alpha1trainingruntimes": _OLDER,
    "v2alpha1clustertrainingruntimes": _OLDER,
    "jobsets": "/apis/jobset.x-k8s.io/v1alpha2",
    "pods": "/api/v1",
}
_MERGE: Final = "application/merge-patch+json"
_RUNS: Final = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
_TIME: Final = "2026-01-01T00:00:00Z"


@dataclass(frozen=True)
class Teammate(User):
    """A user, at home in a namespace."""

    def elsewhere(self, namespace: str) -> Teammate:
        """Return the same user in another namespace."""
        return Teammate(self.cluster, namespace)

    def fresh(self, *arguments: str, check: bool = True) -> str:
        """Return what a kubectl prints that has never asked this API server what it has."""
        with tempfile.TemporaryDirectory() as folder:
            result = self.kubectl(f"--cache-dir={folder}", *arguments, check=check)
        return result.stdout if check else result.stdout + result.stderr

    def get(self, kind: str, name: str) -> Tree:
        """Return an object, asked for without a kubectl: many looks are cheap so."""
        return self._read(self._path(kind, name))

    def names(self, kind: str) -> list[str]:
        """Return the names of all objects of a kind."""
        return [item["metadata"]["name"] for item in self._read(self._path(kind))["items"]]

    def pods(self, job: str, step: str | None = None) -> list[Tree]:
        """Return the pods of a step of a TrainJob that are not on their way out."""
        selector = f"jobset.sigs.k8s.io/jobset-name={job},jobset.sigs.k8s.io/replicatedjob-name={step}"
        items = self._read(f"{self._path('pods')}?labelSelector={selector}")["items"]
        return [item for item in items if "deletionTimestamp" not in item["metadata"]]

    def _path(self, kind: str, name: str = "") -> str:
        place = "" if "cluster" in kind else f"/namespaces/{self.namespace}"
        return f"{_GROUPS[kind]}{place}/{kind}" + (f"/{name}" if name else "")

    def _read(self, path: str) -> Tree:
        with self.cluster.connection() as connection:
            found: Tree = json.loads(connection.send("GET", path))
        return found

    def older(self, name: str) -> Tree:
        """Return a TrainJob of the older shape."""
        return self.get("v2alpha1trainjobs", name)

    def today(self, name: str) -> Tree:
        """Return a TrainJob of today's."""
        return self.get("trainjobs", name)

    def wait_today(self, name: str) -> Tree:
        """Wait until a TrainJob of the older shape has become one of today's, and return that."""
        self.wait_sync(name)
        return self.today(name)

    def wait_sync(self, name: str, status: str = "True", kind: str = "v2alpha1trainjobs") -> Tree:
        """Wait until the condition InSync has a status, and return it."""
        found: Tree = {}

        def said() -> bool:
            conditions = self.get(kind, name).get("status", {}).get("conditions", [])
            found.update(next((one for one in conditions if one["type"] == "InSync"), {}))
            return found.get("status") == status

        self.wait(f"{name} to have InSync={status}", said)
        return found

    def wait_older(self, name: str, state: str) -> Tree:
        """Wait until a TrainJob of the older shape has a state, and return its status."""
        self.wait(f"{name} to be {state}", lambda: self.older(name).get("status", {}).get("state", "") == state)
        status: Tree = self.older(name)["status"]
        return status

    def wait_jobset(self, name: str) -> Tree:
        """Wait for the JobSet of a TrainJob, and return it."""
        self.wait(f"JobSet {name}", lambda: name in self.names("jobsets"))
        return self.get("jobsets", name)

    # -- the kubelet ----------------------------------------------------------------------------------------------

    def play(self, job: str, step: str, how: Literal["run", "succeed", "fail"], count: int = 1) -> None:
        """Let all pods of a step run or end, once they are there."""
        self.wait(f"{count} pods of {job}'s {step}", lambda: len(self.pods(job, step)) == count)
        for pod in self.pods(job, step):
            container = pod["spec"]["containers"][0]["name"]
            code = {"succeed": 0, "fail": 1}.get(how)
            state = (
                _RUNS if code is None else {"terminated": {"exitCode": code, "startedAt": _TIME, "finishedAt": _TIME}}
            )
            seen = {"name": container, "image": "i", "imageID": "i", "ready": how == "run", "restartCount": 0}
            ready = {"type": "Ready", "status": "True" if how == "run" else "False", "lastTransitionTime": _TIME}
            phase = {"run": "Running", "succeed": "Succeeded", "fail": "Failed"}[how]
            status = {"phase": phase, "conditions": [ready], "containerStatuses": [{**seen, "state": state}]}
            self._patch_status(self._path("pods", pod["metadata"]["name"]), status)

    def report(self, job: str, **metrics: str) -> None:
        """Let a training report its figures."""
        figures = [{"name": name, "value": value} for name, value in metrics.items()]
        progress = {"trainerStatus": {"metrics": figures, "lastUpdatedTime": _TIME}}
        self._patch_status(self._path("trainjobs", job), progress)

    def _patch_status(self, path: str, status: Tree) -> None:
        with self.cluster.connection() as connection:
            connection.send("PATCH", f"{path}/status", json.dumps({"status": status}), _MERGE)
