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
    from collections.abc import Callable

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
STEP: Final = "jobset.sigs.k8s.io/replicatedjob-name"


class EndedError(AssertionError):
    """A TrainJob ended although only disruptions happened to it."""


class MakeJob(Protocol):
    """Returns a TrainJob that is not submitted yet; `others` are those of `trainer.train_job`."""

    def __call__(self, name: str, runtime: str = ..., **others: Any) -> Job: ...


@dataclass
class Job:
    """A TrainJob on a cluster, used by one thread at a time; with MultiKueue, its pods are on another one."""

    cluster: Cluster
    tree: Tree = field(repr=False)
    nodes: int
    engine: str = "trainplane"
    cycles: int = 0
    end: str = ""
    """Its condition at the end, or the error that ended the test of it."""
    seconds: float = SECONDS
    worker: Cluster | None = None
    """The cluster of its pods, if that is another one."""
    _open: dict[str, Connection] = field(default_factory=dict, repr=False)
    """Connections to the API servers, by the cluster's name."""
    _last: tuple[str, int] = ("", -1)
    """The container of rank 0 at the last look, and its step."""

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
        self.send("DELETE", f"{self._pods_path}/{self.pod(rank)['metadata']['name']}", on=self._pods_on)

    def evict_pod(self, rank: int) -> None:
        name = self.pod(rank)["metadata"]["name"]
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        self.send("POST", f"{self._pods_path}/{name}/eviction", eviction, on=self._pods_on)

    def abort(self, rank: int) -> None:
        self._pods_on.touch(self.namespace, self.pod(rank)["metadata"]["name"], "/tmp/abort")

    def finish(self) -> None:
        self._pods_on.touch(self.namespace, self.pod(0)["metadata"]["name"], "/tmp/finish")

    # -- what a user sees -----------------------------------------------------------------------------------------

    def get(self) -> Tree:
        return self.send("GET", self._path)

    def pods(self) -> list[Tree]:
        """Return the pods that are not being deleted and have not ended, in the order of their ranks."""
        selector = f"labelSelector=jobset.sigs.k8s.io/jobset-name={self.name}"
        items = self.send("GET", f"{self._pods_path}?{selector}", on=self._pods_on)["items"]
        present = (
            pod
            for pod in items
            if "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] in {"Pending", "Running"}
        )
        return sorted(present, key=_rank)

    def pod(self, rank: int) -> Tree:
        return self.pods()[rank]

    def ended(self) -> str:
        """Return Complete or Failed with its message; empty if the TrainJob has not ended."""
        for one in self.get().get("status", {}).get("conditions", []):
            if one["type"] in {"Complete", "Failed"} and one["status"] == "True":
                return f"{one['type']}: {one['message']}"
        return ""

    def container(self) -> str:
        """Return the id of rank 0's container, once all ranks train and their steps increase; empty before that."""
        pods = self.pods()
        statuses = [one for pod in pods for one in pod["status"].get("containerStatuses", ())]
        if len(statuses) != self.nodes or not all("running" in one["state"] for one in statuses):
            return ""
        now: tuple[str, int] = (statuses[0]["containerID"], self._step(pods[0]["metadata"]["name"]))
        last, self._last = self._last, now
        return now[0] if last[0] == now[0] and now[1] > last[1] >= 0 else ""

    def is_on(self, machine: str) -> bool:
        """Return whether a pod is on a node."""
        return any(pod["spec"].get("nodeName") == machine for pod in self.pods())

    def _step(self, pod: str) -> int:
        """Return the last step that a pod printed; -1 if it has printed none."""
        try:
            log = self._connection(self._pods_on).send("GET", f"{self._pods_path}/{pod}/log?tailLines=5").decode()
        except LabError:
            return -1
        steps = re.findall(r"^step (\d+)$", log, re.MULTILINE)
        return int(steps[-1]) if steps else -1

    # -- waiting --------------------------------------------------------------------------------------------------

    def wait_training(self, *, without: str = "") -> str:
        """Wait until all ranks train together, rank 0 in another container than this; return its container's id."""
        found = ""

        def trains() -> bool:
            nonlocal found
            if ended := self.ended():
                raise EndedError(f"{self.name} ended in cycle {self.cycles}: {ended}")
            found = self.container()
            return found not in {"", without}

        self._wait("train", trains)
        return found

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

    @property
    def _pods_on(self) -> Cluster:
        return self.worker or self.cluster

    def _connection(self, cluster: Cluster) -> Connection:
        if cluster.name not in self._open:
            self._open[cluster.name] = cluster.connection()
        return self._open[cluster.name]

    def close(self) -> None:
        """Close the connections to the API servers."""
        for connection in self._open.values():
            connection.__exit__()
        self._open.clear()

    def send(self, method: str, path: str, body: Tree | None = None, *, on: Cluster | None = None) -> Tree:
        kind = MERGE if method == "PATCH" else "application/json"
        text = None if body is None else json.dumps(body)
        answer: Tree = json.loads(self._connection(on or self.cluster).send(method, path, text, kind))
        return answer


def _rank(pod: Tree) -> tuple[bool, int]:
    """Return the sort key of a pod: a launcher has rank 0, and the others follow by index."""
    labels = pod["metadata"]["labels"]
    return labels[STEP] != "launcher", int(labels[INDEX])
