"""TrainJobs whose JobSets the test plays: every write of the operator is then caused by one known step.

Their runtime gives JobSets another manager (`managedBy`), so the JobSet controller leaves them alone and the test says
what they report. Nothing else changes: the API server, its admission and the operator are real.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab.cluster import Cluster

Tree = dict[str, Any]

TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
JOBSET = "/apis/jobset.x-k8s.io/v1alpha2"
RUNTIME = "played"
MANAGER = "e2e.trainplane.dev/played"
_MERGE = "application/merge-patch+json"
_SECONDS = 60.0
_TIMES = frozenset({"creationTimestamp", "deletionTimestamp", "lastTransitionTime", "time"})


def runtime(namespace: str) -> Tree:
    """Return the runtime of all played TrainJobs."""
    container = {"name": "node", "image": "registry.invalid/none:1", "command": ["train"]}
    job = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"template": {"spec": {"containers": [container]}}},
        },
    }
    template = {"spec": {"managedBy": MANAGER, "replicatedJobs": [job]}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": RUNTIME, "namespace": namespace},
        "spec": {"mlPolicy": {"numNodes": 2, "torch": {}}, "template": template},
    }


@dataclass(frozen=True)
class Played:
    """A played TrainJob."""

    cluster: Cluster
    namespace: str
    name: str

    def create(self, **spec: Any) -> None:
        ref = {"kind": "TrainingRuntime", "name": RUNTIME}
        spec = {"runtimeRef": ref, "trainer": {"env": [{"name": "SEED", "value": "7"}]}, **spec}
        body = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": self.name}}
        self._send("POST", f"{TRAINER}/namespaces/{self.namespace}/trainjobs", body | {"spec": spec})

    def set_suspend(self, *, suspend: bool) -> None:
        self._send("PATCH", self._path(TRAINER, "trainjobs"), {"spec": {"suspend": suspend}})

    def delete_jobset(self) -> None:
        self._send("DELETE", self._path(JOBSET, "jobsets"))

    def report(self, *, condition: str | None = None, **counts: int) -> None:
        """Let the JobSet report the Jobs of its one step, and perhaps that it ended."""
        every = dict.fromkeys(("ready", "succeeded", "failed", "active", "suspended"), 0)
        status: Tree = {"replicatedJobsStatus": [{"name": "node", **every, **counts}]}
        if condition:
            ended = {"type": condition, "status": "True", "reason": f"Played{condition}", "message": "as played"}
            status["conditions"] = [ended | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]
        self._send("PATCH", self._path(JOBSET, "jobsets") + "/status", {"status": status})

    def objects(self) -> Tree:
        """Return all that there is of the TrainJob, without what differs from one to the next: name, uids, times."""
        found = {
            "trainjob": self._find(self._path(TRAINER, "trainjobs")),
            "jobset": self._find(self._path(JOBSET, "jobsets")),
            "snapshot": self._find(f"/api/v1/namespaces/{self.namespace}/configmaps/{self.name}-runtime-snapshot"),
        }
        uid = found["trainjob"]["metadata"]["uid"] if found["trainjob"] else "none"
        text = json.dumps(_timeless(found)).replace(uid, "UID").replace(self.name, "NAME")
        normal: Tree = json.loads(text)
        for tree in filter(None, normal.values()):
            meta = tree["metadata"]
            del meta["resourceVersion"]
            meta["uid"] = meta["uid"] == "UID"
            meta["managedFields"] = sorted(meta["managedFields"], key=json.dumps)
        return normal

    def wait(self, what: str, holds: Callable[[Tree], bool]) -> None:
        log = self.cluster.log("trainplane")
        wait_for(f"{self.name}: {what}", lambda: holds(self.objects()), seconds=_SECONDS, log=log)

    def _path(self, group: str, plural: str) -> str:
        return f"{group}/namespaces/{self.namespace}/{plural}/{self.name}"

    def _send(self, method: str, path: str, body: Tree | None = None) -> bytes:
        content = _MERGE if method == "PATCH" else "application/json"
        with self.cluster.connection() as connection:
            return connection.send(method, path, None if body is None else json.dumps(body), content)

    def _find(self, path: str) -> Tree | None:
        folder, _, name = path.rpartition("/")
        found = json.loads(self._send("GET", f"{folder}?fieldSelector=metadata.name%3D{name}"))
        items: list[Tree] = found["items"]
        return items[0] if items else None


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(entry) for key, entry in value.items() if key not in _TIMES}
    if isinstance(value, list):
        return [_timeless(entry) for entry in value]
    return value
