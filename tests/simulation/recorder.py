"""Plays a script on real engines and notes how they stood after each step: `python -m tests.simulation.recorder`.

A cluster of the lab runs kube-apiserver, the controller-manager's Job controller and garbage collector, JobSet and
Kueue, all as released. This module is the kubelet of its one node, and, to Kueue, the operator: both do what the script
says and nothing else. A step has come to rest when nothing changes any more.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lab import jobset, kueue, trainplane
from lab.cluster import Cluster
from lab.errors import LabError
from lab.processes import wait_for
from tests.simulation import abstract
from tests.simulation.kueue import PRIORITY_LABEL
from tests.simulation.people import GATES, QUEUE_LABEL, RUNTIME_SPECS, runtime
from tests.simulation.playing import NAME, jobset_of, matches, placed_on, with_image
from tests.simulation.replay import replay_jobset, replay_queue
from tests.simulation.scripts import JOBSETS, QUEUES, SPOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lab.connection import Connection
    from tests.simulation.playing import Noted
    from tests.simulation.scripts import Step
    from trainplane.kube.testing.storage import Tree

RECORDED: Final = Path(__file__).with_name("recorded")
QUIET_SECONDS: Final = 3.0
"""How long nothing may change before a step counts as done, if all stands as the model, or an earlier record, says."""
UNEXPECTED_SECONDS: Final = 30.0
"""The same if it stands otherwise: on a busy machine an engine may take long to begin."""
MOST_SECONDS: Final = 120.0
"""How long a Job may take to make another pod for one that failed."""
ABREAST: Final = 8
"""Scripts that are played at once."""

_MERGE = "application/merge-patch+json"
_JOBSET = "/apis/jobset.x-k8s.io/v1alpha2"
_TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
_SERIAL = itertools.count()


@contextmanager
def engines(name: str) -> Iterator[Cluster]:
    """Bring up a cluster with all engines that scripts are played on; it ends with the context, or with the process."""
    cluster = Cluster.up(name, owned=True)
    try:
        jobset.install(cluster)
        trainplane.install_crds(cluster)
        kueue.install(cluster, frameworks=("trainer.kubeflow.org/trainjob",))
        cluster.apply(
            _priority(), *(_flavor(one) for one in SPOT), runtime("torch", "train:1", **RUNTIME_SPECS["torch"])
        )
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
            connection.send("PATCH", f"/api/v1/nodes/{_node_name(flavor)}/status", status, _MERGE)


def record_jobset(cluster: Cluster, steps: Sequence[Step], expected: Sequence[Noted] = ()) -> list[Noted]:
    """Return how everything stood after each step of a script of a JobSet; what is `expected` is believed sooner."""
    with cluster.connection() as connection:
        return _play(_JobSetStage(connection), steps, expected)


def record_queue(cluster: Cluster, steps: Sequence[Step], expected: Sequence[Noted] = ()) -> list[Noted]:
    """Return how everything stood after each step of a script of a queue."""
    with cluster.connection() as connection:
        return _play(_QueueStage(connection), steps, expected)


def _play(stage: Any, steps: Sequence[Step], expected: Sequence[Noted]) -> list[Noted]:
    noted: list[Noted] = []
    for place, (verb, *about) in enumerate(steps):
        refused = getattr(stage, verb)(*about) is False
        state = _rest(stage, expected[place]["state"] if place < len(expected) else None)
        noted.append({"step": [verb, *about], "refused": refused, "state": state})
    return noted


def _rest(stage: Any, expected: Tree | None) -> Tree:
    """Return how things stand when nothing has changed for a while: a short one if they are as expected."""
    state: Tree = stage.state()
    since = time.monotonic()
    while True:
        time.sleep(0.2)
        now: Tree = stage.state()
        if now != state:
            state, since = now, time.monotonic()
        quiet = time.monotonic() - since
        if quiet >= (QUIET_SECONDS if state == expected else UNEXPECTED_SECONDS):
            return state


class _Stage:
    """A namespace of a script's own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.namespace = f"script-{next(_SERIAL)}"
        self._send("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})

    def _send(self, method: str, path: str, body: Tree | None = None) -> Any:
        kind = _MERGE if method == "PATCH" else "application/json"
        return json.loads(self._connection.send(method, path, None if body is None else json.dumps(body), kind))

    def _find(self, path: str) -> Tree | None:
        try:
            found: Tree = self._send("GET", path)
        except LabError as error:
            if ": 404 " in str(error):
                return None
            raise
        return found

    def _list(self, prefix: str, plural: str) -> list[Tree]:
        items: list[Tree] = self._send("GET", f"{prefix}/namespaces/{self.namespace}/{plural}")["items"]
        return items

    def _may(self, method: str, path: str, body: Tree) -> bool:
        """Send, and return whether it was taken."""
        try:
            self._send(method, path, body)
        except LabError as error:
            if ": 422 " in str(error) or ": 403 " in str(error):
                return False
            raise
        return True


class _JobSetStage(_Stage):
    """A JobSet with its Jobs and pods; this is their kubelet."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._path = f"{_JOBSET}/namespaces/{self.namespace}/jobsets"
        self._pods = f"/api/v1/namespaces/{self.namespace}/pods"

    def state(self) -> Tree:
        """Return how everything stands."""
        found = self._find(f"{self._path}/{NAME}")
        return abstract.jobset_state(found, self._list("/apis/batch/v1", "jobs"), self._list("/api/v1", "pods"))

    def create(self, told: Tree) -> None:
        """Create the JobSet."""
        self._send("POST", self._path, jobset_of(self.namespace, told))

    def suspend(self) -> bool:
        """Hold it back."""
        return self._change(suspend=True)

    def resume(self) -> bool:
        """Let it run."""
        return self._change(suspend=False)

    def place(self, flavor: str) -> bool:
        """Place its pods elsewhere; False if that is refused."""
        return self._change(replicatedJobs=placed_on(self._send("GET", f"{self._path}/{NAME}"), flavor))

    def image(self, image: str) -> bool:
        """Give its pods another image; False if that is refused."""
        return self._change(replicatedJobs=with_image(self._send("GET", f"{self._path}/{NAME}"), image))

    def ttl(self, seconds: int) -> bool:
        """Give it a time after which it goes."""
        return self._change(ttlSecondsAfterFinished=seconds)

    def _change(self, **spec: Any) -> bool:
        return self._may("PATCH", f"{self._path}/{NAME}", {"spec": spec})

    def delete(self) -> None:
        """Delete it."""
        self._send("DELETE", f"{self._path}/{NAME}", {"propagationPolicy": "Background"})

    def drop_job(self, job: str) -> None:
        """Delete a Job."""
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{NAME}-{job}"
        self._send("DELETE", path, {"propagationPolicy": "Background"})

    def drop_pod(self, about: Tree) -> None:
        """Delete a pod."""
        for pod in self._chosen(about, {"Pending", "Running"}):
            self._send("DELETE", f"{self._pods}/{pod['metadata']['name']}")

    def run(self, about: Tree | None = None) -> None:
        """Begin pods that wait."""
        for pod in self._chosen(about, {"Pending"}):
            self._show(pod, "Running", {"running": {"startedAt": _now()}})

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
        for pod in self._list("/api/v1", "pods"):
            if "deletionTimestamp" in pod["metadata"]:
                if pod["status"]["phase"] in {"Pending", "Running"}:
                    self._show(pod, "Failed", _terminated(143))
                self._send("DELETE", f"{self._pods}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})

    def _show(self, pod: Tree, phase: str, state: Tree) -> None:
        ready = "True" if phase == "Running" else "False"
        shown = {"name": "node", "image": "train:1", "imageID": "", "restartCount": 0, "ready": phase == "Running"}
        status = {
            "phase": phase,
            "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": ready}],
            "containerStatuses": [{**shown, "state": state}],
        }
        self._send("PATCH", f"{self._pods}/{pod['metadata']['name']}/status", {"status": status})

    def _chosen(self, about: Tree | None, phases: set[str]) -> list[Tree]:
        return [
            one
            for one in self._list("/api/v1", "pods")
            if matches(one, about or {})
            and one["status"]["phase"] in phases
            and "deletionTimestamp" not in one["metadata"]
        ]


def _terminated(code: int) -> Tree:
    now = _now()
    reason = "Error" if code else "Completed"
    return {"terminated": {"exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now}}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class _QueueStage(_Stage):
    """TrainJobs of a queue of their own, whose quota is CPUs: a pod wants one. This is their operator."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._kueue = f"/apis/kueue.x-k8s.io/{kueue.api_version()}"
        self._jobs = f"{_TRAINER}/namespaces/{self.namespace}/trainjobs"
        preemption = {"withinClusterQueue": "LowerPriority"}
        spec = {"namespaceSelector": {}, "resourceGroups": [_quota(SPOT)], "preemption": preemption}
        self._send("POST", f"{self._kueue}/clusterqueues", self._named("ClusterQueue", self.namespace, spec))
        local = self._named("LocalQueue", "queue", {"clusterQueue": self.namespace})
        self._send("POST", f"{self._kueue}/namespaces/{self.namespace}/localqueues", local)

    def _named(self, kind: str, name: str, spec: Tree) -> Tree:
        api = self._kueue.removeprefix("/apis/")
        return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}

    def state(self) -> Tree:
        """Return how everything stands; a TrainJob whose Workload is not there yet has no quota."""
        waits = abstract.workload(reserved="", stopping=False, over=False)
        jobs = self._list(_TRAINER, "trainjobs")
        workloads = {one["metadata"]["name"]: waits for one in jobs} | {
            owner["name"]: _workload(one)
            for one in self._list(self._kueue, "workloads")
            for owner in one["metadata"].get("ownerReferences") or ()
        }
        queue = self._send("GET", f"{self._kueue}/clusterqueues/{self.namespace}")
        used = {
            one["name"]: int(one["resources"][0]["total"])
            for one in (queue.get("status") or {}).get("flavorsReservation") or ()
        }
        return abstract.queue_state(jobs, workloads, dict.fromkeys(SPOT, 0) | used)

    def create(self, name: str, pods: int, way: str = "") -> None:
        """Create a TrainJob, perhaps with a gate, or one that goes first."""
        trainer = {"numNodes": pods, "resourcesPerNode": {"requests": {"cpu": "1"}}}
        labels = {QUEUE_LABEL: "queue"} | ({PRIORITY_LABEL: "first"} if way == "first" else {})
        notes = {GATES: "example.com/gate"} if way == "gate" else {}
        meta = {"name": name, "labels": labels, "annotations": notes}
        ref = {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": "torch"}
        spec = {"runtimeRef": ref, "trainer": trainer}
        body = {"apiVersion": _TRAINER.removeprefix("/apis/"), "kind": "TrainJob", "metadata": meta, "spec": spec}
        self._send("POST", self._jobs, body)

    def count(self, name: str, active: int) -> None:
        """Count Jobs of a TrainJob as active."""
        self._status(name, jobsStatus=[_counts(active)])

    def finish(self, name: str, kind: str) -> None:
        """End a TrainJob."""
        end = {"type": kind, "status": "True", "reason": "Over", "message": "over", "lastTransitionTime": _now()}
        self._status(name, jobsStatus=[_counts(0)], conditions=[end])

    def _status(self, name: str, **status: Any) -> None:
        self._send("PATCH", f"{self._jobs}/{name}/status", {"status": status})

    def delete(self, name: str) -> None:
        """Delete a TrainJob."""
        self._send("DELETE", f"{self._jobs}/{name}")

    def suspend(self, name: str) -> bool:
        """Hold a TrainJob back."""
        return self._may("PATCH", f"{self._jobs}/{name}", {"spec": {"suspend": True}})

    def resume(self, name: str) -> bool:
        """Let a TrainJob run."""
        return self._may("PATCH", f"{self._jobs}/{name}", {"spec": {"suspend": False}})

    def deactivate(self, name: str) -> None:
        """Take a TrainJob's quota."""
        self._activate(name, active=False)

    def activate(self, name: str) -> None:
        """Let it have some again."""
        self._activate(name, active=True)

    def _activate(self, name: str, *, active: bool) -> None:
        for one in self._list(self._kueue, "workloads"):
            if any(owner["name"] == name for owner in one["metadata"].get("ownerReferences") or ()):
                path = f"{self._kueue}/namespaces/{self.namespace}/workloads/{one['metadata']['name']}"
                self._send("PATCH", path, {"spec": {"active": active}})

    def open(self, name: str) -> None:
        """Open a TrainJob's gate."""
        self._send("PATCH", f"{self._jobs}/{name}", {"metadata": {"annotations": {GATES: None}}})

    def offer(self, quota: dict[str, int]) -> None:
        """Give each flavor so much quota."""
        self._send(
            "PATCH", f"{self._kueue}/clusterqueues/{self.namespace}", {"spec": {"resourceGroups": [_quota(quota)]}}
        )


def _counts(active: int) -> Tree:
    return {"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": active, "suspended": 0}


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


def _quota(flavors: dict[str, int]) -> Tree:
    return {
        "coveredResources": ["cpu"],
        "flavors": [
            {"name": name, "resources": [{"name": "cpu", "nominalQuota": str(pods)}]} for name, pods in flavors.items()
        ],
    }


def _flavor(name: str) -> Tree:
    api = f"kueue.x-k8s.io/{kueue.api_version()}"
    spec = {"nodeLabels": {"flavor": name}}
    return {"apiVersion": api, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


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
                path = RECORDED / kind / f"{name.replace(' ', '-').replace(',', '')}.json"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps({"name": name, "steps": states}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
