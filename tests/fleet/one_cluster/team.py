"""A team in the one cluster: a namespace, its queue, and what happens to its TrainJobs, seen through the API alone."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from lab.errors import LabError, StartError
from lab.kwok import LASTS
from lab.processes import wait_for
from tests.fleet import objects

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab.cluster import Cluster
    from lab.connection import Connection
    from tests.fleet.objects import Tree

PATIENCE = 180.0
"""Seconds that anything may take on a busy machine of two cores."""
_PAUSE = 0.1
_MERGE = "application/merge-patch+json"
_CORE = "/api/v1"
_KUEUE = f"/apis/{objects.KUEUE}"
_TRAINER = f"/apis/{objects.TRAINER}"
_ROOTS = {
    "trainjobs": _TRAINER,
    "trainingruntimes": _TRAINER,
    "clustertrainingruntimes": _TRAINER,
    "jobsets": "/apis/jobset.x-k8s.io/v1alpha2",
    "jobs": "/apis/batch/v1",
    "workloads": _KUEUE,
    "localqueues": _KUEUE,
    "clusterqueues": _KUEUE,
    "resourceflavors": _KUEUE,
    "topologies": _KUEUE,
    "workloadpriorityclasses": _KUEUE,
    "admissionchecks": _KUEUE,
    "multikueueconfigs": _KUEUE,
}
_OF_CLUSTER = frozenset(
    {
        "clustertrainingruntimes",
        "clusterqueues",
        "resourceflavors",
        "topologies",
        "workloadpriorityclasses",
        "admissionchecks",
        "multikueueconfigs",
        "namespaces",
        "nodes",
    }
)


@dataclass
class Team:
    """A team at home in a namespace. Everything it asks for goes through one connection."""

    cluster: Cluster
    connection: Connection
    namespace: str
    leftovers: list[tuple[str, str]] = field(default_factory=list)
    """Objects of the whole cluster that go when the team goes, as (plural, name)."""
    neighbours: list[Team] = field(default_factory=list)

    def neighbour(self, suffix: str, **labels: str) -> Team:
        """Return another team with a namespace of its own, with these labels; it goes when this one goes."""
        name = f"{self.namespace}-{suffix}"
        tree = objects.namespace(name)
        self.create({**tree, "metadata": {**tree["metadata"], "labels": labels}})
        team = Team(self.cluster, self.connection, name, self.leftovers)
        self.neighbours.append(team)
        return team

    # -- the API ---------------------------------------------------------------------------------------------------

    def create(self, tree: Tree) -> Tree:
        """Create an object, once; a `LabError` is the refusal."""
        plural = _plural(tree["kind"])
        if plural in _OF_CLUSTER:
            self.leftovers.append((plural, tree["metadata"]["name"]))
        return self._send("POST", self._path(plural), tree)

    def dry_run(self, tree: Tree) -> Tree:
        """Return what creating an object would make of it."""
        return self._send("POST", f"{self._path(_plural(tree['kind']))}?dryRun=All", tree)

    def get(self, plural: str, name: str) -> Tree:
        return self._send("GET", f"{self._path(plural)}/{name}")

    def find(self, plural: str, name: str) -> Tree | None:
        return next((one for one in self.all(plural) if one["metadata"]["name"] == name), None)

    def all(self, plural: str, selector: str = "") -> list[Tree]:
        query = f"?labelSelector={selector}" if selector else ""
        items: list[Tree] = self._send("GET", self._path(plural) + query)["items"]
        return items

    def patch(self, plural: str, name: str, change: Tree, *, subresource: str = "") -> Tree:
        return self._send("PATCH", f"{self._path(plural)}/{name}{subresource}", change)

    def replace(self, plural: str, tree: Tree) -> Tree:
        return self._send("PUT", f"{self._path(plural)}/{tree['metadata']['name']}", tree)

    def delete(self, plural: str, name: str, *, now: bool = False) -> None:
        self._send("DELETE", f"{self._path(plural)}/{name}{'?gracePeriodSeconds=0' if now else ''}")

    def _path(self, plural: str) -> str:
        place = "" if plural in _OF_CLUSTER else f"/namespaces/{self.namespace}"
        return f"{_ROOTS.get(plural, _CORE)}{place}/{plural}"

    def _send(self, method: str, path: str, body: Tree | None = None) -> Tree:
        content = _MERGE if method == "PATCH" else "application/json"
        answer: Tree = json.loads(
            self.connection.send(method, path, None if body is None else json.dumps(body), content)
        )
        return answer

    # -- queues ----------------------------------------------------------------------------------------------------

    def open_queue(self, quota: dict[str, str] | None = None, *, flavors: tuple[str, ...] = (), **spec: Any) -> str:
        """Give the team a ClusterQueue of its own name, and a LocalQueue that leads there; return its name.

        With `flavors`, each has the whole quota. Returns when Kueue takes jobs for it.
        """
        tree = objects.cluster_queue(self.namespace, quota, **spec)
        if flavors:
            (group,) = tree["spec"]["resourceGroups"]
            (first,) = group["flavors"]
            group["flavors"] = [{**first, "name": name} for name in flavors]
        self.create(tree)
        self.create(objects.local_queue(self.namespace))
        self.wait("the queue to be active", lambda: self.holds("localqueues", objects.QUEUE, "Active"))
        return objects.QUEUE

    # -- jobs ------------------------------------------------------------------------------------------------------

    def submit(self, name: str, **changes: Any) -> Tree:
        """Create a TrainJob; Kueue refuses one whose runtime it has not seen yet, so ask again for a moment."""
        return self.create_seen(objects.train_job(name, self.namespace, **changes))

    def create_seen(self, job: Tree) -> Tree:
        """Create a TrainJob as soon as Kueue knows its runtime."""
        created: list[Tree] = []

        def accepted() -> bool:
            try:
                created.append(self.create(job))
            except LabError as refusal:
                if "not found" not in str(refusal):
                    raise
                return False
            return True

        self.wait(f"Kueue to know the runtime of {job['metadata']['name']}", accepted)
        return created[0]

    def job(self, name: str) -> Tree:
        return self.get("trainjobs", name)

    def suspended(self, name: str) -> bool:
        return bool(self.job(name)["spec"]["suspend"])

    def active(self, name: str) -> int:
        """Return how many Jobs of a TrainJob are active, as Kueue counts them."""
        return sum(one["active"] for one in self.job(name).get("status", {}).get("jobsStatus", []))

    def workload(self, job: str) -> Tree | None:
        """Return the Workload of a TrainJob, None if it has none."""
        uid = self.job(job)["metadata"]["uid"]
        found = self.all("workloads", f"kueue.x-k8s.io/job-uid={uid}")
        return found[0] if found else None

    def pods(self, job: str) -> list[Tree]:
        """Return a TrainJob's pods that are not on their way out."""
        found = self.all("pods", f"jobset.sigs.k8s.io/jobset-name={job}")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def end_pods(self, job: str, step: str = "") -> None:
        """Let the simulated pods of a TrainJob complete now."""
        for pod in self.pods(job):
            if not step or pod["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"] == step:
                try:
                    self.patch("pods", pod["metadata"]["name"], {"metadata": {"annotations": {LASTS: "0s"}}})
                except LabError as error:
                    if ": 404 " not in str(error):  # one that is gone meanwhile needs no end
                        raise

    def kueue_entry(self, job: str) -> Tree:
        """Return Kueue's own entry of a TrainJob's runtimePatches."""
        entries = self.job(job)["spec"]["runtimePatches"]
        (entry,) = [one for one in entries if one["manager"] == objects.KUEUE_MANAGER]
        found: Tree = entry
        return found

    def wait_event(self, job: str, reason: str, words: str) -> None:
        """Wait for an event about a TrainJob: it comes after the deed, and others may use the same reason."""
        about = {"kind": "TrainJob", "name": job}

        def told() -> bool:
            return any(
                one["reason"] == reason and words in one["message"] and about.items() <= one["involvedObject"].items()
                for one in self.all("events")
            )

        self.wait(f"an event {reason} of {job}: {words}", told)

    def holds(self, plural: str, name: str, condition: str) -> bool:
        """Return whether an object has a condition that is True."""
        return condition_of(self.get(plural, name), condition) == "True"

    def admitted(self, job: str) -> bool:
        workload = self.workload(job)
        return workload is not None and condition_of(workload, "Admitted") == "True"

    # -- waiting ---------------------------------------------------------------------------------------------------

    def wait(self, what: str, holds: Callable[[], Any], *, seconds: float = PATIENCE) -> None:
        def holds_now() -> bool:
            if holds():
                return True
            time.sleep(_PAUSE)
            return False

        try:
            wait_for(f"{self.namespace}: {what}", holds_now, seconds=seconds)
        except StartError as error:
            raise AssertionError(f"{error}{self._story()}") from None

    def _story(self) -> str:
        """Return what is known of the team's jobs: for whoever reads why a test failed."""
        lines = []
        for plural in ("trainjobs", "workloads"):
            for one in self.all(plural):
                conditions = one.get("status", {}).get("conditions", [])
                told = [f"{c['type']}={c['status']} ({c['reason']}: {c['message']})" for c in conditions]
                lines.append(f"{plural}/{one['metadata']['name']}: {'; '.join(told) or 'nothing yet'}")
        return "\n".join(lines)

    def wait_running(self, *jobs: str, pods: int | None = None) -> None:
        """Wait until TrainJobs are admitted, unsuspended and have pods that run."""
        for job in jobs:
            self.wait(f"{job} to run", partial(self._runs, job, pods))

    def _runs(self, job: str, count: int | None) -> bool:
        if self.suspended(job):
            return False
        found = self.pods(job)
        return {pod["status"]["phase"] for pod in found} == {"Running"} and count in {None, len(found)}

    def wait_queued(self, *jobs: str) -> None:
        """Wait until Kueue has looked at TrainJobs and had no quota for them."""
        for job in jobs:
            self.wait(f"{job} to wait for quota", partial(self._waits, job))
            assert self.suspended(job)

    def _waits(self, job: str) -> bool:
        return condition_of(self.workload(job) or {}, "QuotaReserved") == "False"

    # -- leaving ---------------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Delete what is the team's: its jobs until Kueue has let go of them, the rest without waiting.

        In a namespace that goes Kueue cannot tell what a job's pods are, and holds its quota until the very end.
        """
        for team in (self, *self.neighbours):
            team._end_jobs()
        for plural, name in self.leftovers:
            self.wait(f"leave to delete {plural}/{name}", partial(self._deleted, plural, name))

    def _end_jobs(self) -> None:
        self._send("DELETE", self._path("trainjobs"))
        self.wait("Kueue to let go of its jobs", lambda: not self.all("workloads"))

    def _deleted(self, plural: str, name: str) -> bool:
        """Delete an object; False if it may not go yet."""
        try:
            self.delete(plural, name)
        except LabError as error:
            return ": 404 " in str(error)
        return True


def condition_of(tree: Tree, kind: str) -> str | None:
    """Return the status of a condition, None if it is not there."""
    conditions = tree.get("status", {}).get("conditions", [])
    return next((one["status"] for one in conditions if one["type"] == kind), None)


def _plural(kind: str) -> str:
    word = kind.lower()
    return f"{word[:-1]}ies" if word == "topology" else f"{word}es" if word.endswith("s") else f"{word}s"
