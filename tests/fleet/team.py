"""A team: a namespace and a queue on every cluster of the fleet, what it does on the hub and what is seen where."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from lab.errors import StartError
from lab.fleet import CHECK
from lab.processes import wait_for
from tests.fleet import objects
from tests.fleet.api import Api, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lab.cluster import Cluster
    from lab.fleet import Fleet

Tree = dict[str, Any]

PATIENCE = 180.0
"""Seconds that anything may take on a busy machine of two cores."""
_PAUSE = 0.15
_TAIL, _WIDTH = 8, 400
"""Lines of a log that a failure shows, and how much of each: Kueue's carry stack traces."""
_JOBSET_LABEL = "jobset.sigs.k8s.io/jobset-name"


@dataclass(frozen=True)
class Team:
    """A namespace and its queues. Clusters are named `hub`, `worker1`, `worker2`."""

    fleet: Fleet
    namespace: str

    # -- clusters -------------------------------------------------------------------------------------------------

    def cluster(self, name: str) -> Cluster:
        """Return a cluster by its name in the fleet."""
        return dict(zip(("hub", *self.workers), self.fleet.clusters, strict=True))[name]

    @property
    def workers(self) -> tuple[str, ...]:
        """The names of the workers."""
        return tuple(f"worker{number}" for number in range(1, len(self.fleet.workers) + 1))

    def api(self, cluster: str = "hub") -> Api:
        """Return a cluster's objects."""
        return Api(self.cluster(cluster))

    # -- what they do ---------------------------------------------------------------------------------------------

    def submit(self, name: str, *, on: str = "hub", **job: Any) -> Tree:
        """Create a TrainJob in the team's queue, made as `objects.train_job` says; return it as it was stored."""
        return self.api(on).create(objects.train_job(name, self.namespace, **job))

    def submit_seen(self, name: str, **job: Any) -> Tree:
        """Create a TrainJob on the hub as soon as Kueue there knows its runtime, which a test has just made."""
        return self.create_seen(objects.train_job(name, self.namespace, **job))

    def create_seen(self, job: Tree) -> Tree:
        """Create a document of a TrainJob on the hub as soon as Kueue there knows its runtime."""
        made: list[Tree] = []

        def accepted() -> bool:
            try:
                made.append(self.api().create(job))
            except RefusedError as error:
                if f"runtime '{job['spec']['runtimeRef']['name']}' not found" not in error.message:
                    raise
                return False
            return True

        self.wait(f"Kueue to know the runtime of {job['metadata']['name']}", accepted)
        return made[0]

    def delete(self, name: str, *, on: str = "hub") -> None:
        """Delete a TrainJob."""
        self.api(on).delete("trainjobs", self.namespace, name)

    def end(self, name: str, *, on: str, phase: str = "Succeeded") -> None:
        """Let the pods of a TrainJob end that run on a worker: a training that is over, or has failed."""
        status = {"status": {"phase": phase}}
        for pod in self.pods(name, on=on):
            try:
                self.api(on).patch("pods", self.namespace, pod["metadata"]["name"], status, part="status")
            except RefusedError as error:
                if error.code != 404:  # one that is gone meanwhile needs no end
                    raise

    def finish(self, *names: str) -> None:
        """Let TrainJobs end wherever they run, and wait until they are complete as the hub tells.

        For jobs that lost their place: Kueue may take a run back before its end has reached the hub. What it begins
        then ends as well.
        """

        def done() -> bool:
            for name in names:
                for worker in self._somewhere(name):
                    self.end(name, on=worker)
            return all(self.is_done(name) for name in names)

        self.wait(f"{', '.join(names)} to end", done)
        for name in names:
            self.wait_done(name)

    # -- what is seen ---------------------------------------------------------------------------------------------

    def job(self, name: str, *, on: str = "hub") -> Tree | None:
        """Return a TrainJob, None when it is not there."""
        return self.api(on).get("trainjobs", self.namespace, name)

    def workload(self, name: str, *, on: str = "hub") -> Tree | None:
        """Return the Workload of a TrainJob, found by its name, which is the same on all clusters."""
        found = self.api(on).list("workloads", self.namespace)
        return next((one for one in found if one["metadata"]["name"].rpartition("-")[0] == f"trainjob-{name}"), None)

    def pods(self, name: str, *, on: str) -> list[Tree]:
        """Return the pods of a TrainJob that are not on their way out."""
        found = self.api(on).list("pods", self.namespace, labels=f"{_JOBSET_LABEL}={name}")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def condition(self, name: str, kind: str, *, on: str = "hub") -> Tree | None:
        """Return a condition of a TrainJob that is True."""
        return true_condition(self.job(name, on=on), kind)

    def is_done(self, name: str, *, on: str = "hub") -> bool:
        """Return whether a TrainJob is Complete or Failed."""
        return bool(self.condition(name, "Complete", on=on) or self.condition(name, "Failed", on=on))

    def check(self, name: str, check: str = CHECK) -> Tree:
        """Return the state of an admission check of a TrainJob's Workload on the hub; empty before there is one."""
        states = ((self.workload(name) or {}).get("status") or {}).get("admissionChecks") or []
        return next((state for state in states if state["name"] == check), {})

    def placed(self, name: str) -> str | None:
        """Return the worker that a TrainJob was dispatched to, as the hub's Workload says."""
        where: str | None = ((self.workload(name) or {}).get("status") or {}).get("clusterName")
        return where

    def is_running(self, name: str, *, on: str) -> bool:
        """Return whether a TrainJob has running pods on a worker, and reports them there."""
        job = self.job(name, on=on)
        active = sum(step["active"] for step in ((job or {}).get("status") or {}).get("jobsStatus", []))
        pods = self.pods(name, on=on)
        return active > 0 and bool(pods) and all(pod["status"].get("phase") == "Running" for pod in pods)

    def events(self, kind: str, name: str, *, on: str = "hub") -> list[Tree]:
        """Return the events about an object."""
        fields = f"involvedObject.kind={kind},involvedObject.name={name}"
        return self.api(on).list("events", self.namespace, fields=fields)

    # -- waiting --------------------------------------------------------------------------------------------------

    def wait(self, what: str, holds: Callable[[], object], *, seconds: float = PATIENCE) -> None:
        """Wait until something holds; a failure shows how the team's objects stand everywhere."""
        try:
            wait_until(what, holds, seconds=seconds, log=self.fleet.hub)
        except AssertionError as error:
            raise AssertionError("\n".join([str(error), *self._standing()])) from None

    def wait_running(self, name: str, *, on: str | None = None) -> str:
        """Wait until a TrainJob's pods run on a worker, and the hub says so; return the worker."""

        def running() -> bool:
            where = self.placed(name)
            if where is None or not self.is_running(name, on=where):
                return False
            status = (self.job(name) or {}).get("status") or {}
            return any(step["active"] for step in status.get("jobsStatus", []))

        self.wait(f"{name} to run", running)
        where = self.placed(name)
        assert where is not None
        assert on in {None, where}, f"{name} runs on {where}, not on {on}"
        return where

    def _standing(self) -> Iterator[str]:
        """Yield what there is of the team on each cluster, with its status, and which engines have ended there."""
        for name in ("hub", *self.workers):
            ended = [engine for engine, one in self.cluster(name).engines().items() if not one.process.alive()]
            yield f"{name}: {' and '.join(ended) or 'no engine'} has ended"
            if {"etcd", "kube-apiserver"} & {*ended}:
                continue
            for plural in ("workloads", "trainjobs", "jobsets", "jobs", "pods"):
                for one in self.api(name).list(plural, self.namespace):
                    status = json.dumps(one.get("status"))[:_WIDTH]
                    yield f"{name}: {plural} {one['metadata']['name']} {status}"

    def _somewhere(self, name: str) -> list[str]:
        """Return the workers on which a TrainJob's pods run, whatever the hub says."""
        return [worker for worker in self.workers if self.is_running(name, on=worker)]

    def wait_done(self, name: str, kind: str = "Complete") -> Tree:
        """Wait until a TrainJob has ended as the hub tells; return its condition, which must be of this kind."""
        self.wait(f"{name} to end", lambda: self.is_done(name))
        condition = self.condition(name, kind)
        assert condition is not None, (self.job(name) or {}).get("status")
        return condition

    def wait_event(self, kind: str, name: str, reason: str, *, on: str = "hub") -> list[Tree]:
        """Wait for events about an object whose reason has this word in it; return them. They come after the deed."""
        found: list[Tree] = []

        def told() -> bool:
            found[:] = [event for event in self.events(kind, name, on=on) if reason in event["reason"]]
            return bool(found)

        self.wait(f"an event {reason} of {kind} {name}", told)
        return found

    def wait_gone(self, name: str, *, on: str) -> None:
        """Wait until a cluster has neither TrainJob nor Workload of that name."""
        self.wait(f"{name} to be gone from {on}", lambda: not (self.job(name, on=on) or self.workload(name, on=on)))


class MakeTeam(Protocol):
    """The fixture `team`: called with quotas by cluster, and with what else `make_team` takes."""

    def __call__(self, *, quotas: dict[str, dict[str, str]] | None = None, **others: Any) -> Team:
        """Make a team."""


def make_team(
    fleet: Fleet,
    namespace: str,
    *,
    checks: tuple[str, ...] = (CHECK,),
    quotas: dict[str, dict[str, str]],
    absent: tuple[str, ...] = (),
    **queue: Any,
) -> Team:
    """Make the team's objects on every cluster but those that it is to be `absent` from, and wait until Kueue has them.

    `quotas` are by cluster and add to `objects.QUOTA`; `checks` are the hub's admission checks; `queue` adds to the
    spec of every ClusterQueue.
    """
    team = Team(fleet, namespace)

    def prepare(name: str) -> None:
        api = team.api(name)
        if name not in absent:
            api.apply(objects.namespace(namespace))
        api.apply(
            objects.cluster_queue(namespace, quotas.get(name), checks=checks if name == "hub" else (), **queue),
            *(() if name in absent else (objects.local_queue(namespace),)),
        )
        if name not in absent:
            wait_until(f"the queue on {name}", lambda: _is_active(api, namespace))

    _everywhere(team, prepare)
    return team


def remove_team(team: Team) -> None:
    """Delete all that there is of a team, without waiting."""

    def remove(name: str) -> None:
        api = team.api(name)
        for job in api.list("trainjobs", team.namespace):
            api.delete("trainjobs", team.namespace, job["metadata"]["name"])
        api.delete("namespaces", "", team.namespace)
        api.delete("clusterqueues", "", team.namespace)

    _everywhere(team, remove)


def true_condition(tree: Tree | None, kind: str) -> Tree | None:
    """Return a condition of an object that is True, None when it has none."""
    conditions = ((tree or {}).get("status") or {}).get("conditions") or []
    return next((one for one in conditions if one["type"] == kind and one["status"] == "True"), None)


def wait_until(
    what: str, holds: Callable[[], object], *, seconds: float = PATIENCE, log: Cluster | None = None
) -> None:
    """Wait until something holds; a failure shows the end of a cluster's Kueue log."""

    def holds_now() -> bool:
        if holds():
            return True
        time.sleep(_PAUSE)
        return False

    try:
        wait_for(what, holds_now, seconds=seconds)
    except StartError as error:
        raise AssertionError(f"{error}{_tail(log) if log else ''}") from None


def _tail(cluster: Cluster) -> str:
    lines = cluster.log("kueue").read_text(errors="replace").splitlines()[-_TAIL:]
    return "\n".join(line[:_WIDTH] for line in lines)


def _is_active(api: Api, namespace: str) -> bool:
    return bool(true_condition(api.get("localqueues", namespace, objects.QUEUE), "Active"))


def _everywhere(team: Team, work: Callable[[str], None]) -> None:
    with ThreadPoolExecutor(len(team.fleet.clusters)) as pool:
        list(pool.map(work, ("hub", *team.workers)))
