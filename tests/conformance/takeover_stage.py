"""The stage of a takeover: one API server, two operators that take turns, and jobs whose pods the test plays."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from lab import jobset, kwok, reference, trainplane
from lab.cluster import Cluster
from lab.errors import LabError
from tests.conformance import documents, gangs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lab.connection import Connection
    from tests.conformance.cases import Tree
    from tests.conformance.takeover import Member

Item = TypeVar("Item")
Result = TypeVar("Result")

_TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
_JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2"
_MERGE = "application/merge-patch+json"
_NAME = "jobset.sigs.k8s.io/jobset-name"
_PATIENCE = 180.0
_WRITERS = 6
_REST = 3.0
"""Seconds without a write after which the Job controller and the garbage collector are taken to be done."""
_FOLLOWED, _TROUBLE = "followed", "TrainJobResourcesCreationFailed"
_READY = [{"type": kind, "status": "True"} for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")]
KEPT = {"JobSet": f"{_JOBSETS}/jobsets", "Job": "/apis/batch/v1/jobs", "Pod": "/api/v1/pods"}
"""What an operator that takes over may not touch."""


class Stage:
    """A cluster with JobSet and simulated nodes, and the operator that runs now."""

    def __init__(self, name: str) -> None:
        self.cluster = Cluster.up(name, owned=True)
        try:
            jobset.install(self.cluster)
            kwok.install(self.cluster, nodes=2)
            gangs.install(self.cluster)
            reference.install(self.cluster, qps=500.0)
            self._webhooks = self._reference_webhooks()
            self._thread = threading.local()
            self._connections: list[Connection] = []
            self._fences = 0
            self._place("fences")
            self.create("fences", documents.runtime())
        except BaseException:
            self.cluster.down()
            raise

    def close(self) -> None:
        """End the cluster."""
        for connection in self._connections:
            connection.__exit__()
        self.cluster.down()

    # -- who runs -------------------------------------------------------------------------------------------------

    def to_ours(self) -> None:
        """Stop the reference and start ours, as an admin would: webhooks and CRDs too."""
        for one in self._webhooks:
            self.cluster.kubectl("delete", one["kind"], one["metadata"]["name"])
        self.cluster.kill("reference")
        trainplane.install(self.cluster, qps=500.0)
        self.settle()

    def turn_progress_off(self) -> None:
        """Let ours make jobs as the reference does by default, from now on."""
        config = self.cluster.folder / f"{trainplane.ENGINE}.yaml"
        tree = yaml.safe_load(config.read_text())
        config.write_text(yaml.safe_dump({**tree, "featureGates": {"TrainJobStatus": False}}))
        self.cluster.kill(trainplane.ENGINE)
        self.cluster.revive(trainplane.ENGINE)
        trainplane.wait_ready(self.cluster)
        self.settle()

    def to_reference(self) -> None:
        """Stop ours and start the reference again."""
        trainplane.uninstall(self.cluster)
        reference.install_crds(self.cluster)
        self.cluster.revive("reference")
        self.cluster.wait_http("reference", reference._HEALTH_PORT)
        self.cluster.apply(*self._webhooks)
        self.settle()

    def _reference_webhooks(self) -> list[Tree]:
        found = []
        for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            for item in self.cluster.get(kind)["items"]:
                if item["metadata"]["name"].startswith("reference-"):
                    item["metadata"] = {"name": item["metadata"]["name"]}
                    found.append(item)
        return found

    def settle(self) -> None:
        """Return when the operator has reached jobs made now, three times: it has then reached every other one."""
        for _ in range(3):
            self._fences += 1
            self._fence(f"fence-{self._fences}")

    def _fence(self, name: str) -> None:
        self.until(f"{name} is accepted", lambda: self.create("fences", documents.train_job(name)))
        self.until(f"{name} has a JobSet", lambda: self.get(f"{_JOBSETS}/namespaces/fences/jobsets/{name}"))

    # -- requests -------------------------------------------------------------------------------------------------

    def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """Send one request on this thread's connection and return what it answers; nothing if it is refused."""
        if not hasattr(self._thread, "connection"):
            self._thread.connection = self.cluster.connection()
            self._connections.append(self._thread.connection)
        try:
            return json.loads(
                self._thread.connection.send(method, path, None if body is None else json.dumps(body), content_type)
            )
        except LabError:
            return None

    def get(self, path: str) -> Any:
        """Return an object or a list; nothing if there is none."""
        return self.send("GET", path)

    def create(self, namespace: str, document: Tree) -> Any:
        """Create a runtime or a TrainJob."""
        return self.send("POST", f"{_TRAINER}/namespaces/{namespace}/{document['kind'].lower()}s", document)

    def _place(self, namespace: str) -> None:
        """Make a namespace, with the account without which pods are refused."""
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        self.until(f"{namespace} has its account", lambda: self.get(account))

    def populate(self, namespace: str, runtimes: list[Tree], jobs: list[Tree]) -> None:
        """Make a namespace with runtimes and jobs."""
        self._place(namespace)
        for runtime in runtimes:
            assert self.create(namespace, runtime), runtime
        for job in jobs:
            self._admit(namespace, job)

    def _admit(self, namespace: str, job: Tree) -> None:
        """Create a TrainJob; the reference's webhook sees a runtime only a moment after it was made."""
        self.until(f"{job['metadata']['name']} is accepted", lambda: self.create(namespace, job))

    def until(self, what: str, holds: Callable[[], Any]) -> Any:
        """Wait until something holds, and return it."""
        deadline = time.monotonic() + _PATIENCE
        while not (found := holds()):
            assert time.monotonic() < deadline, f"not within {_PATIENCE} s: {what}"
            time.sleep(0.1)
        return found

    # -- jobs -----------------------------------------------------------------------------------------------------

    def act_all(self, namespace: str, stories: dict[Member, tuple[str, ...]]) -> None:
        """Do to each job what its story says, in order; to several jobs at once."""

        def tell(member: Member) -> None:
            for action in stories[member]:
                self.act(namespace, member, action)

        self.each(tell, stories)

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Do some work on several items at once, and return what it gives of each."""
        with ThreadPoolExecutor(_WRITERS) as pool:
            return list(pool.map(work, items))

    def act(self, namespace: str, member: Member, action: str) -> None:
        """Do one thing to a job, and wait until its TrainJob shows it."""
        job = f"{_TRAINER}/namespaces/{namespace}/trainjobs/{member.name}"
        match action:
            case "suspend" | "resume":
                self._turn(namespace, member, stop=action == "suspend")
            case "start":
                self.until(f"{member.name} has its pods", lambda: self._whole(namespace, member.name))
                self._play(namespace, member.name, "Running")
                self.until(f"{member.name} is ready", lambda: self._counts(job, "ready"))
            case "succeed":
                self._play(namespace, member.name, "Succeeded")
                self.until(f"{member.name} counts success", lambda: self._counts(job, "succeeded"))
            case "fail":
                self._play(namespace, member.name, "Failed")
                self.until(f"{member.name} fails", lambda: self.condition(job, "Failed", "True"))
            case "await-failed":
                self.until(f"{member.name} fails", lambda: self.condition(job, "Failed", "True"))
            case "delete-jobset":
                self.until(f"{member.name} completes", lambda: self.condition(job, "Complete", "True"))
                assert self.send("DELETE", f"{_JOBSETS}/namespaces/{namespace}/jobsets/{member.name}")
                self.until(f"{member.name} has no Jobs", lambda: not self._jobs(namespace, member.name))
            case "delete-runtime":
                assert self.send("DELETE", f"{_TRAINER}/namespaces/{namespace}/trainingruntimes/{member.runtime}")
            case "edit-runtime":
                self.until(f"{member.name} is suspended", lambda: self.condition(job, "Suspended", "True"))
                path = f"{_TRAINER}/namespaces/{namespace}/trainingruntimes/{member.runtime}"
                jobs = self.get(path)["spec"]["template"]["spec"]["replicatedJobs"]
                jobs[0]["template"]["spec"]["backoffLimit"] = 3
                # A patch: the operator may put its finalizer on the runtime between a read and a replacement.
                edit = {"spec": {"template": {"spec": {"replicatedJobs": jobs}}}}
                assert self.send("PATCH", path, edit, _MERGE), f"{member.runtime} cannot be edited"
            case _:
                raise AssertionError(action)

    def ask(self, namespace: str, name: str, *, stop: bool) -> bool:
        """Suspend a job or resume it; return whether its JobSet followed, and not the operator's trouble with it."""
        told = self._trouble(namespace, name)
        job = self.trainjob(namespace, name)
        assert self.send("PATCH", job, {"spec": {"suspend": stop}}, _MERGE), f"{name}: suspend {stop} is refused"
        return bool(
            self.until(
                f"{name} follows, or is told not to",
                lambda: self._follows(namespace, name, stop=stop, told=told),
            )
            == _FOLLOWED
        )

    def _follows(self, namespace: str, name: str, *, stop: bool, told: int) -> str:
        if self.jobset(namespace, name)["spec"].get("suspend", False) is stop:
            return _FOLLOWED
        return _TROUBLE if self._trouble(namespace, name) > told else ""

    def _trouble(self, namespace: str, name: str) -> int:
        """Return how often it was told that a TrainJob's objects cannot be as they should."""
        events = self.get(f"/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.name%3D{name}")["items"]
        return sum(event.get("count") or 1 for event in events if event["reason"] == _TROUBLE)

    def jobset(self, namespace: str, name: str) -> Tree:
        """Return a JobSet; an empty one if there is none."""
        found: Tree | None = self.get(f"{_JOBSETS}/namespaces/{namespace}/jobsets/{name}")
        return found or {"metadata": {"uid": ""}, "spec": {}}

    def make_anew(self, namespace: str, name: str) -> Tree:
        """Delete a JobSet and return the one that the operator makes in its place."""
        old = self.jobset(namespace, name)["metadata"]["uid"]
        assert self.send("DELETE", f"{_JOBSETS}/namespaces/{namespace}/jobsets/{name}")
        made = self.until(f"{name} has another JobSet", lambda: self._other(namespace, name, old))
        return dict(made)

    def _other(self, namespace: str, name: str, old: str) -> Tree | None:
        found = self.jobset(namespace, name)
        return found if found["metadata"]["uid"] not in ("", old) else None

    def _turn(self, namespace: str, member: Member, *, stop: bool) -> None:
        """Suspend a job, or resume one: an operator that had never seen it suspended would not say so."""
        job = self.trainjob(namespace, member.name)
        if not stop:
            self.until(f"{member.name} is suspended", lambda: self.condition(job, "Suspended", "True"))
        assert self.send("PATCH", job, {"spec": {"suspend": stop}}, _MERGE), f"{member.name}: suspend {stop} is refused"
        self.until(f"{member.name} turns", lambda: self.condition(job, "Suspended", str(stop)))
        if stop:
            self.until(f"{member.name} has no pods", lambda: not self._pods(namespace, member.name))

    def condition(self, path: str, kind: str, status: str) -> Any:
        """Return a TrainJob's condition if it has that status."""
        for entry in ((self.get(path) or {}).get("status") or {}).get("conditions", ()):
            if entry["type"] == kind and entry["status"] == status:
                return entry
        return None

    def trainjob(self, namespace: str, name: str) -> str:
        """Return the path of a TrainJob."""
        return f"{_TRAINER}/namespaces/{namespace}/trainjobs/{name}"

    def _counts(self, path: str, count: str) -> bool:
        entries = ((self.get(path) or {}).get("status") or {}).get("jobsStatus", ())
        return any(entry[count] for entry in entries)

    def _pods(self, namespace: str, name: str) -> list[Tree]:
        pods = self.get(f"/api/v1/namespaces/{namespace}/pods?labelSelector={_NAME}%3D{name}")["items"]
        return [pod for pod in pods if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")]

    def _jobs(self, namespace: str, name: str) -> list[Tree]:
        found: list[Tree] = self.get(f"/apis/batch/v1/namespaces/{namespace}/jobs?labelSelector={_NAME}%3D{name}")[
            "items"
        ]
        return found

    def _whole(self, namespace: str, name: str) -> bool:
        """Tell if every Job of a JobSet that runs has all its pods."""
        jobs = self._jobs(namespace, name)
        ended = ("Complete", "Failed")
        running = [job for job in jobs if not any(one["type"] in ended for one in job["status"].get("conditions", ()))]
        wanted = sum(job["spec"]["parallelism"] for job in running if not job["spec"].get("suspend"))
        return bool(wanted) and wanted == len(self._pods(namespace, name))

    def _play(self, namespace: str, name: str, phase: str) -> None:
        """Set the phase of a job's pods, in the place of a kubelet."""
        for pod in self._pods(namespace, name):
            conditions = _READY if phase == "Running" else []
            status = {"phase": phase, "conditions": conditions}
            path = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}"
            done = self.send("PATCH", f"{path}/status", {"status": status}, _MERGE)
            # Where one pod has failed, the Job controller deletes the others.
            assert done or (phase == "Failed" and self.get(path) is None), (name, phase)

    # -- what may not change --------------------------------------------------------------------------------------

    def rested(self, *namespaces: str) -> dict[str, Tree]:
        """Return what is kept, once Kubernetes' own controllers have left it alone for a while."""
        found, since = self.kept(*namespaces), time.monotonic()
        while time.monotonic() - since < _REST:
            time.sleep(0.2)
            now = self.kept(*namespaces)
            if now != found:
                found, since = now, time.monotonic()
        return found

    def kept(self, *namespaces: str) -> dict[str, Tree]:
        """Return what an operator that takes over may not touch, by kind and name."""
        return {
            f"{kind} {item['metadata']['namespace']}/{item['metadata']['name']}": item
            for kind, path in KEPT.items()
            for item in self.get(path)["items"]
            if item["metadata"]["namespace"] in namespaces
        }
