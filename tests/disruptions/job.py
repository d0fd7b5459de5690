"""One TrainJob with pods that talk, what is done to it, and what a user then sees."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from lab.errors import LabError
from lab.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from lab.cluster import Cluster
    from lab.connection import Connection

Tree = dict[str, Any]

TRAINER: Final = "/apis/trainer.kubeflow.org/v1alpha1"
MERGE: Final = "application/merge-patch+json"
SECONDS: Final = 600.0
"""How long anything may take on a busy machine; no test judges how long it took."""
PAUSE: Final = 0.4
"""Seconds between two looks: a dozen TrainJobs are looked at together, and their pods need the machine too."""
INDEX: Final = "batch.kubernetes.io/job-completion-index"


class EndedError(AssertionError):
    """A TrainJob ended although only disruptions happened to it."""


class MakeJob(Protocol):
    """Returns a TrainJob that is not submitted yet; `others` are those of `trainer.train_job`."""

    def __call__(self, name: str, runtime: str = ..., **others: Any) -> Job: ...


@dataclass
class Job:
    """A TrainJob on a cluster, used by one thread at a time."""

    cluster: Cluster
    tree: Tree
    nodes: int
    engine: str = "trainplane"
    cycles: int = 0
    seconds: float = SECONDS
    _open: Connection | None = None
    _steps: dict[str, tuple[set[str], int]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        name: str = self.tree["metadata"]["name"]
        return name

    @property
    def namespace(self) -> str:
        namespace: str = self.tree["metadata"]["namespace"]
        return namespace

    def submit(self) -> None:
        self.send("POST", f"{TRAINER}/namespaces/{self.namespace}/trainjobs", self.tree)

    def set_suspend(self, *, suspend: bool) -> None:
        self.send("PATCH", self._path, {"spec": {"suspend": suspend}})

    def delete_pod(self, rank: int) -> None:
        self.send("DELETE", f"{self._pods_path}/{self.pod(rank)['metadata']['name']}")

    def evict_pod(self, rank: int) -> None:
        name = self.pod(rank)["metadata"]["name"]
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        self.send("POST", f"{self._pods_path}/{name}/eviction", eviction)

    def abort(self, rank: int) -> None:
        self.cluster.touch(self.namespace, self.pod(rank)["metadata"]["name"], "/tmp/abort")

    def finish(self) -> None:
        self.cluster.touch(self.namespace, self.pod(0)["metadata"]["name"], "/tmp/finish")

    # -- what a user sees -----------------------------------------------------------------------------------------

    def get(self) -> Tree:
        return self.send("GET", self._path)

    def pods(self) -> list[Tree]:
        """Return the pods that are not being deleted and have not ended."""
        selector = f"labelSelector=jobset.sigs.k8s.io/jobset-name={self.name}"
        items = self.send("GET", f"{self._pods_path}?{selector}")["items"]
        return [
            pod
            for pod in items
            if "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] in {"Pending", "Running"}
        ]

    def pod(self, rank: int) -> Tree:
        found = (pod for pod in self.pods() if pod["metadata"]["labels"].get(INDEX) == str(rank))
        return next(found)

    def ended(self) -> str:
        """Return Complete or Failed with its message; empty if the TrainJob has not ended."""
        for one in self.get().get("status", {}).get("conditions", []):
            if one["type"] in {"Complete", "Failed"} and one["status"] == "True":
                return f"{one['type']}: {one['message']}"
        return ""

    def containers(self) -> set[str]:
        """Return the ids of the containers that train, once all do and get on; empty before that."""
        pods = [pod for pod in self.pods() if pod["metadata"]["labels"].get(INDEX) is not None]
        statuses = [one for pod in pods for one in pod["status"].get("containerStatuses", ())]
        if len(statuses) != self.nodes or not all("running" in one["state"] for one in statuses):
            return set()
        (first,) = [pod["metadata"]["name"] for pod in pods if pod["metadata"]["labels"][INDEX] == "0"]
        ids = {one["containerID"] for one in statuses}
        steps = self._steps.get(first, (set(), -1))
        now = self._step(first)
        self._steps = {first: (ids, now)}
        return ids if steps[0] == ids and now > steps[1] >= 0 else set()

    def containers_on(self, machine: str) -> set[str]:
        """Return the ids of the containers on a node."""
        here = (pod for pod in self.pods() if pod["spec"].get("nodeName") == machine)
        return {one.get("containerID", "") for pod in here for one in pod["status"].get("containerStatuses", ())}

    def _step(self, pod: str) -> int:
        """Return the last step that a pod printed; -1 if it has printed none."""
        try:
            log = self._connection().send("GET", f"{self._pods_path}/{pod}/log?tailLines=5").decode()
        except LabError:
            return -1
        steps = re.findall(r"^step (\d+)$", log, re.MULTILINE)
        return int(steps[-1]) if steps else -1

    # -- waiting --------------------------------------------------------------------------------------------------

    def wait_training(self, *, without: Collection[str] = ()) -> set[str]:
        """Wait until all ranks train together, none of them in an earlier container; return the containers' ids."""
        found: set[str] = set()

        def trains() -> bool:
            if ended := self.ended():
                raise EndedError(f"{self.name} ended in cycle {self.cycles}: {ended}")
            found.clear()
            found.update(self.containers())
            return bool(found) and found.isdisjoint(without)

        self._wait("train", trains)
        return set(found)

    def wait_stopping(self) -> None:
        self._wait("stop", lambda: len(self.pods()) < self.nodes)

    def wait_without_pods(self) -> None:
        self._wait("have no pods", lambda: not self.pods())

    def wait_end(self) -> str:
        self._wait("end", lambda: bool(self.ended()))
        return self.ended()

    def _wait(self, what: str, holds: Callable[[], bool]) -> None:
        def holds_now() -> bool:
            if holds():
                return True
            time.sleep(PAUSE)
            return False

        wait_for(f"{self.name} to {what}", holds_now, seconds=self.seconds, log=self.cluster.log(self.engine))

    # -- requests -------------------------------------------------------------------------------------------------

    @property
    def _path(self) -> str:
        return f"{TRAINER}/namespaces/{self.namespace}/trainjobs/{self.name}"

    @property
    def _pods_path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def _connection(self) -> Connection:
        if self._open is None:
            self._open = self.cluster.connection()
        return self._open

    def close(self) -> None:
        """Close the connection to the API server."""
        if self._open is not None:
            self._open.__exit__()
            self._open = None

    def send(self, method: str, path: str, body: Tree | None = None) -> Tree:
        kind = MERGE if method == "PATCH" else "application/json"
        text = None if body is None else json.dumps(body)
        answer: Tree = json.loads(self._connection().send(method, path, text, kind))
        return answer
