"""A user of both shapes, who also plays the kubelet: pods run and end when a test says so."""

from __future__ import annotations

import json
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from tests.e2e.user import User

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Tree = dict[str, Any]

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
        return self.get("jobset", name)

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
            self._patch_status(f"/api/v1/namespaces/{self.namespace}/pods/{pod['metadata']['name']}", status)

    def report(self, job: str, **metrics: str) -> None:
        """Let a training report its figures."""
        figures = [{"name": name, "value": value} for name, value in metrics.items()]
        path = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{self.namespace}/trainjobs/{job}"
        self._patch_status(path, {"trainerStatus": {"metrics": figures, "lastUpdatedTime": _TIME}})

    def _patch_status(self, path: str, status: Tree) -> None:
        with self.cluster.connection() as connection:
            connection.send("PATCH", f"{path}/status", json.dumps({"status": status}), _MERGE)

    # -- others ---------------------------------------------------------------------------------------------------

    @contextmanager
    def with_crd(self, crd: Tree) -> Iterator[None]:
        """Have one more CRD for a while."""
        name = crd["metadata"]["name"]
        self.cluster.apply(crd)
        self.cluster.wait_established(name)
        try:
            yield
        finally:
            self.cluster.kubectl("delete", "crd", name)
            self.wait(f"CRD {name} to go", self._is_gone(name))

    def _is_gone(self, crd: str) -> Callable[[], bool]:
        return lambda: crd not in self.cluster.kubectl("get", "crd", "--output=name").stdout
