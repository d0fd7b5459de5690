"""Plays a script on real engines and notes how they stood after each step: `python -m tests.simulation.recorder`.

A cluster of the lab runs kube-apiserver, the controller-manager's Job controller and garbage collector, JobSet and
Kueue, all as released. This module is the kubelet of its one node, and, to Kueue, the operator: both do what the script
says and nothing else. A step has come to rest when nothing changes any more.
"""

from __future__ import annotations

import itertools
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from lab import jobset, kueue, trainplane
from lab.cluster import Cluster
from lab.processes import wait_for
from tests.simulation import abstract
from tests.simulation.kueue import PRIORITY_LABEL
from tests.simulation.people import GATES, RUNTIME_SPECS, runtime
from tests.simulation.playing import NAME, counted, ended, jobset_of, matches, placed_on, queued, with_image
from tests.simulation.recordings import RECORDED, write_recording
from tests.simulation.replay import replay_jobset, replay_queue
from tests.simulation.scripts import JOBSETS, QUEUES, SPOT
from tests.simulation.stage import MERGE, Stage, play, quota_of, resource_flavor, stamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lab.connection import Connection
    from tests.simulation.recordings import Observation
    from tests.simulation.scripts import Step
    from trainplane.kube.testing.storage import Tree

MOST_SECONDS: Final = 120.0
"""How long a Job may take to make another pod for one that failed."""
ABREAST: Final = 8
"""Scripts that are played at once."""

_JOBSET = "/apis/jobset.x-k8s.io/v1alpha2"
_SERIAL = itertools.count()


@contextmanager
def engines(name: str) -> Iterator[Cluster]:
    """Bring up a cluster with all engines that scripts are played on; it ends with the context, or with the process."""
    cluster = Cluster.up(name, owned=True)
    try:
        jobset.install(cluster)
        trainplane.install_crds(cluster)
        kueue.install(cluster, frameworks=("trainer.kubeflow.org/trainjob",))
        cluster.apply(_priority(), *map(resource_flavor, SPOT), runtime("torch", "train:1", **RUNTIME_SPECS["torch"]))
        _add_nodes(cluster)
        yield cluster
    finally:
        cluster.down()


def _add_nodes(cluster: Cluster) -> None:
    """Add a node of each flavor and one of none, which are ready because this says so: nobody runs their pods."""
    offered = {"cpu": "1000", "memory": "1000Gi", "pods": "10000"}
    ready = {"type": "Ready", "status": "True", "reason": "Played", "message": "by the recorder"}
    status = json.dumps({"status": {"allocatable": offered, "capacity": offered, "conditions": [ready]}})
    with cluster.connection() as connection:
        for flavor in ("", *SPOT):
            connection.send("POST", "/api/v1/nodes", json.dumps(_node(flavor)))
            connection.send("PATCH", f"/api/v1/nodes/{_node_name(flavor)}/status", status, MERGE)


def _name() -> str:
    return f"script-{next(_SERIAL)}"


def record_jobset(cluster: Cluster, steps: Sequence[Step], expected: Sequence[Observation] = ()) -> list[Observation]:
    """Return the state after each step of a script of a JobSet; a state that is `expected` is accepted sooner."""
    with cluster.connection() as connection:
        return play(_JobSetStage(connection, _name()), steps, expected)


def record_queue(cluster: Cluster, steps: Sequence[Step], expected: Sequence[Observation] = ()) -> list[Observation]:
    """Return the state after each step of a script of a queue."""
    with cluster.connection() as connection:
        return play(_QueueStage(connection, _name()), steps, expected)


class _JobSetStage(Stage):
    """A JobSet with its Jobs and pods; this is their kubelet."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        super().__init__(connection, namespace)
        self._path = f"{_JOBSET}/namespaces/{self.namespace}/jobsets"
        self._pods = f"/api/v1/namespaces/{self.namespace}/pods"

    def state(self) -> Tree:
        """Return how everything stands."""
        found = self.find(f"{self._path}/{NAME}")
        return abstract.jobset_state(found, self.all("/apis/batch/v1", "jobs"), self.all("/api/v1", "pods"))

    def create(self, told: Tree) -> None:
        """Create the JobSet."""
        self.send("POST", self._path, jobset_of(self.namespace, told))

    def suspend(self) -> bool:
        """Hold it back."""
        return self._change(suspend=True)

    def resume(self) -> bool:
        """Let it run."""
        return self._change(suspend=False)

    def place(self, flavor: str) -> bool:
        """Place its pods elsewhere; False if that is refused."""
        return self._change(replicatedJobs=placed_on(self.send("GET", f"{self._path}/{NAME}"), flavor))

    def image(self, image: str) -> bool:
        """Give its pods another image; False if that is refused."""
        return self._change(replicatedJobs=with_image(self.send("GET", f"{self._path}/{NAME}"), image))

    def ttl(self, seconds: int) -> bool:
        """Give it a time after which it goes."""
        return self._change(ttlSecondsAfterFinished=seconds)

    def _change(self, **spec: Any) -> bool:
        return self.may("PATCH", f"{self._path}/{NAME}", {"spec": spec})

    def delete(self) -> None:
        """Delete it."""
        self.send("DELETE", f"{self._path}/{NAME}", {"propagationPolicy": "Background"})

    def drop_job(self, job: str) -> None:
        """Delete a Job."""
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{NAME}-{job}"
        self.send("DELETE", path, {"propagationPolicy": "Background"})

    def drop_pod(self, about: Tree) -> None:
        """Delete a pod."""
        for pod in self._chosen(about, {"Pending", "Running"}):
            self.send("DELETE", f"{self._pods}/{pod['metadata']['name']}")

    def run(self, about: Tree | None = None) -> None:
        """Begin pods that wait."""
        for pod in self._chosen(about, {"Pending"}):
            self._show(pod, "Running", {"running": {"startedAt": stamp()}})

    def succeed(self, about: Tree | None = None) -> None:
        """End pods that run, well."""
        for pod in self._chosen(about, {"Running"}):
            self._show(pod, "Succeeded", _terminated(0))

    def fail(self, about: Tree | None = None) -> None:
        """End pods that run with an error."""
        for pod in self._chosen(about, {"Running"}):
            self._show(pod, "Failed", _terminated(1))

    def back_off(self) -> None:
        """End pods that run with an error, and wait until the Job has made another."""
        self.fail()
        wait_for("another pod", lambda: bool(self._chosen(None, {"Pending"})), seconds=MOST_SECONDS)

    def leave(self) -> None:
        """End pods that are told to go, as a kubelet does: it says that their containers ended, and takes them away."""
        for pod in self.all("/api/v1", "pods"):
            if "deletionTimestamp" in pod["metadata"]:
                if pod["status"]["phase"] in {"Pending", "Running"}:
                    self._show(pod, "Failed", _terminated(143))
                self.send("DELETE", f"{self._pods}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})

    def _show(self, pod: Tree, phase: str, state: Tree) -> None:
        ready = "True" if phase == "Running" else "False"
        shown = {"name": "node", "image": "train:1", "imageID": "", "restartCount": 0, "ready": phase == "Running"}
        status = {
            "phase": phase,
            "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": ready}],
            "containerStatuses": [{**shown, "state": state}],
        }
        self.send("PATCH", f"{self._pods}/{pod['metadata']['name']}/status", {"status": status})

    def _chosen(self, about: Tree | None, phases: set[str]) -> list[Tree]:
        return [
            one
            for one in self.all("/api/v1", "pods")
            if matches(one, about or {})
            and one["status"]["phase"] in phases
            and "deletionTimestamp" not in one["metadata"]
        ]


def _terminated(code: int) -> Tree:
    now = stamp()
    reason = "Error" if code else "Completed"
    return {"terminated": {"exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now}}


class _QueueStage(Stage):
    """TrainJobs of a queue of their own, whose quota is CPUs: a pod wants one. This is their operator."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        super().__init__(connection, namespace)
        self.add_queue(resourceGroups=quota_of(SPOT), preemption={"withinClusterQueue": "LowerPriority"})

    def state(self) -> Tree:
        """Return how everything stands; a TrainJob whose Workload is not there yet has no quota."""
        waits = abstract.workload(reserved="", stopping=False, over=False)
        jobs = self.send("GET", self.jobs)["items"]
        workloads = {one["metadata"]["name"]: waits for one in jobs} | {
            owner["name"]: _workload(one)
            for one in self.workloads()
            for owner in one["metadata"].get("ownerReferences") or ()
        }
        queue = self.send("GET", f"{self.kueue}/clusterqueues/{self.namespace}")
        used = {
            one["name"]: int(one["resources"][0]["total"])
            for one in (queue.get("status") or {}).get("flavorsReservation") or ()
        }
        return abstract.queue_state(jobs, workloads, dict.fromkeys(SPOT, 0) | used)

    def create(self, name: str, pods: int, way: str = "") -> None:
        """Create a TrainJob, perhaps with a gate, or one that goes first."""
        body = queued(name, pods)
        if way == "first":
            body["metadata"]["labels"][PRIORITY_LABEL] = "first"
        if way == "gate":
            body["metadata"]["annotations"] = {GATES: "example.com/gate"}
        self.send("POST", self.jobs, body)

    def count(self, name: str, active: int) -> None:
        """Count Jobs of a TrainJob as active."""
        self._status(name, counted(active))

    def finish(self, name: str, kind: str) -> None:
        """End a TrainJob."""
        self._status(name, ended(kind, stamp()))

    def _status(self, name: str, status: Tree) -> None:
        self.send("PATCH", f"{self.jobs}/{name}/status", {"status": status})

    def delete(self, name: str) -> None:
        """Delete a TrainJob."""
        self.send("DELETE", f"{self.jobs}/{name}")

    def suspend(self, name: str) -> bool:
        """Hold a TrainJob back."""
        return self.may("PATCH", f"{self.jobs}/{name}", {"spec": {"suspend": True}})

    def resume(self, name: str) -> bool:
        """Let a TrainJob run."""
        return self.may("PATCH", f"{self.jobs}/{name}", {"spec": {"suspend": False}})

    def deactivate(self, name: str) -> None:
        """Take a TrainJob's quota."""
        self._activate(name, active=False)

    def activate(self, name: str) -> None:
        """Let it have some again."""
        self._activate(name, active=True)

    def _activate(self, name: str, *, active: bool) -> None:
        for one in self.workloads():
            if any(owner["name"] == name for owner in one["metadata"].get("ownerReferences") or ()):
                self.send("PATCH", self.workload_path(one), {"spec": {"active": active}})

    def open(self, name: str) -> None:
        """Open a TrainJob's gate."""
        self.send("PATCH", f"{self.jobs}/{name}", {"metadata": {"annotations": {GATES: None}}})

    def offer(self, quota: dict[str, int]) -> None:
        """Give each flavor so much quota."""
        self.change_queue(resourceGroups=quota_of(quota))


def _workload(tree: Tree) -> Tree:
    status: Any = tree.get("status") or {}
    true = {one["type"] for one in status.get("conditions") or () if one["status"] == "True"}
    assigned = ((status.get("admission") or {}).get("podSetAssignments") or [{}])[0].get("flavors") or {}
    over, reserved = "Finished" in true, "QuotaReserved" in true
    return abstract.workload(
        reserved=assigned.get("cpu", "") if reserved and not over else "",
        stopping=reserved and not over and "Evicted" in true,
        over=over,
    )


def _priority() -> Tree:
    api = f"kueue.x-k8s.io/{kueue.api_version()}"
    return {"apiVersion": api, "kind": "WorkloadPriorityClass", "metadata": {"name": "first"}, "value": 1000}


def _node(flavor: str) -> Tree:
    meta = {"name": _node_name(flavor), "labels": {"flavor": flavor} if flavor else {}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta}


def _node_name(flavor: str) -> str:
    return f"machine-{flavor or 'any'}"


def main(names: list[str]) -> None:
    """Record the scripts of these names, or all, and keep them."""
    with engines("recorder") as cluster, ThreadPoolExecutor(ABREAST) as pool:
        for kind, scripts, record, replay in (
            ("jobset", JOBSETS, record_jobset, replay_jobset),
            ("queue", QUEUES, record_queue, replay_queue),
        ):
            chosen = {name: steps for name, steps in scripts.items() if not names or name in names}
            expected = [replay(steps, 1) for steps in chosen.values()]
            noted = pool.map(record, itertools.repeat(cluster), chosen.values(), expected)
            for name, states in zip(chosen, noted, strict=True):
                write_recording(RECORDED / kind, name, states)


if __name__ == "__main__":
    main(sys.argv[1:])
