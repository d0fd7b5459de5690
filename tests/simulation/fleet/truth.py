"""What is so in a fleet: where each TrainJob of the hub is, what it does, which pods are its, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.apiserver import JOBSETS, TRAINJOBS
from tests.simulation.fleet import offers
from tests.simulation.fleet import workload as wl
from tests.simulation.fleet.history import HUB
from tests.simulation.job import goes, phase
from tests.simulation.people import MULTIKUEUE, NAMESPACE
from tests.simulation.settled import end_of, owner_of
from trainplane.kube.resource import Key
from trainplane.kube.testing.verbs import collection_of
from trainplane.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.simulation.apiserver import ApiServer
    from tests.simulation.loop import VirtualLoop
    from trainplane.kube.testing.storage import Change, Tree

_PODS = collection_of(PODS)
_TOLD_BY = frozenset({TRAINJOBS, wl.COLLECTION, offers.COLLECTION})
_JOBSET = "jobset.sigs.k8s.io/jobset-name"


class Truth:
    """See the module's docstring."""

    def __init__(self, servers: Mapping[str, ApiServer], loop: VirtualLoop) -> None:
        self._servers = servers
        self._loop = loop
        self._changed: dict[str, float] = {}
        """When something last changed that the view shows of the TrainJobs of a name."""
        self.changes = 0
        """How often something changed by which it is told why a job waits."""
        self._left: dict[str, str] = {}
        """Workloads of the hub that name no worker any more, and which they named last."""
        for server in servers.values():
            server.storage.listeners.append(self._hears())
        servers[HUB].storage.listeners.append(self._leaves)

    def _hears(self) -> Callable[[Change, str], None]:
        def changed(change: Change, _: str) -> None:
            tree = change.after or change.before
            assert tree is not None
            self.changes += change.collection in _TOLD_BY
            if change.collection == TRAINJOBS:
                self._changed[change.key.name] = self._loop.time()
            elif change.collection == _PODS:
                self._changed[tree["metadata"]["labels"][_JOBSET]] = self._loop.time()
            elif change.collection == wl.COLLECTION:
                self._changed[change.key.name.split("-")[1]] = self._loop.time()

        return changed

    def _leaves(self, change: Change, _: str) -> None:
        before, after = change.before, change.after
        if change.collection == wl.COLLECTION and before and after and not wl.cluster_of(after):
            self._left[change.key.name] = wl.cluster_of(before) or self._left.get(change.key.name, "")

    def left(self, job: Tree) -> str:
        """Return the worker that a TrainJob of the hub ended on, if its Workload names none since: it was evicted."""
        workload = self.copy_of(job, HUB)
        if workload is None or end_of(job) is None or wl.cluster_of(workload):
            return ""
        return self._left.get(workload["metadata"]["name"], "")

    def still_for(self, name: str) -> float:
        """Return for how many seconds nothing has changed of the TrainJobs of a name."""
        return self._loop.time() - self._changed.get(name, 0.0)

    @staticmethod
    def is_dispatched(job: Tree) -> bool:
        """Return whether a TrainJob of the hub is MultiKueue's."""
        return bool(job["spec"].get("managedBy") == MULTIKUEUE)

    def copy_of(self, job: Tree, cluster: str) -> Tree | None:
        """Return the Workload of a TrainJob of the hub as a cluster has it, the hub itself or a worker."""
        if not self.is_dispatched(job):
            return None
        return self._servers[cluster].find(wl.COLLECTION, Key(NAMESPACE, wl.made_for(job)["metadata"]["name"]))

    def workload_of(self, cluster: str, pod: Tree) -> str:
        """Return the Workload of the copy that a pod on a worker is of; empty if it is of none that is there."""
        key = Key(pod["metadata"]["namespace"], pod["metadata"]["labels"][_JOBSET])
        jobset, job = self._servers[cluster].find(JOBSETS, key), self._servers[cluster].find(TRAINJOBS, key)
        if jobset is None or job is None or owner_of(jobset) != job["metadata"]["uid"]:
            return ""
        return wl.prebuilt(job)

    def running(self, cluster: str) -> list[Tree]:
        """Return the pods of a cluster that run and are not told to go."""
        pods = self._servers[cluster].storage.objects.get(_PODS, {}).values()
        return [one for one in pods if phase(one) == "Running" and not goes(one)]

    def _alive(self, cluster: str, name: str) -> list[Tree]:
        return [
            one
            for one in self._servers[cluster].storage.objects.get(_PODS, {}).values()
            if one["metadata"]["labels"][_JOBSET] == name and phase(one) in {"Pending", "Running"}
        ]

    def of(self, job: Tree, cluster: str) -> Tree | None:
        """Return what the view must show of a TrainJob of the hub; None where pods of others of its name are about.

        `cluster` is where the view shows it: it may know where a job ended that was evicted meanwhile, and need not.
        """
        name, end = job["metadata"]["name"], end_of(job)
        if not self.is_dispatched(job):
            pods = self._alive(HUB, name)
            state = "Suspended" if job["spec"].get("suspend") else "Running" if any(map(_ready, pods)) else "Starting"
            return _shown(HUB, end[0] if end else state, pods)
        workload = self.copy_of(job, HUB)
        where = ("" if workload is None else wl.cluster_of(workload)) or (cluster if cluster == self.left(job) else "")
        elsewhere = [one for one in self._servers if one != where and self._alive(one, name)]
        pods = self._alive(where, name) if where else []
        mine = [one for one in pods if workload and self.workload_of(where, one) == workload["metadata"]["name"]]
        if elsewhere or len(mine) != len(pods):
            return None
        state = "Waiting" if not where else "Running" if any(map(_ready, pods)) else "Starting"
        return _shown(where, end[0] if end else state, pods)


def _shown(cluster: str, state: str, pods: list[Tree]) -> Tree:
    return {"cluster": cluster, "state": state, "pods": len(pods), "readyPods": sum(map(_ready, pods))}


def _ready(pod: Tree) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions") or ())
