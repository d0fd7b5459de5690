"""What stops a running pod from outside: a deletion, an eviction, a preemption by the scheduler, the loss of its node.

    delete_pod   `kubectl delete pod`
    drain        the condition DisruptionTarget and then the deletion, as the eviction API and the scheduler do
    lose_node    nothing for a while, then the condition DeletionByTaintManager and the deletion; at last the garbage
                 collector of pods fails and removes the pod, or the node comes back without the container

Written from the source of Kubernetes 1.36 (`eviction.go`, `taint_eviction.go`, `gc_controller.go`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation import job
from tests.simulation.kubelet import stamp
from trainplane.kube.resource import Key
from trainplane.kube.testing.verbs import collection_of
from trainplane.resources import PODS

if TYPE_CHECKING:
    from random import Random

    from tests.simulation.apiserver import ApiServer
    from tests.simulation.engines import Engines
    from trainplane.kube.testing.storage import Tree

TAINTED_SECONDS = (2.0, 60.0)
"""How long after its node was lost a pod is deleted: the node has to be found unreachable, and the toleration ends."""
COLLECTED_SECONDS = (5.0, 60.0)
"""How long after that the node is removed, and the pod with it, or the node is back."""

_PODS = collection_of(PODS)


class Disruptions:
    """See the module's docstring."""

    def __init__(self, server: ApiServer, engines: Engines, random: Random) -> None:
        self._server = server
        self._engines = engines
        self._random = random

    async def delete_pod(self, name: str, how: Tree) -> None:
        """Delete running pods of a TrainJob."""
        for pod in self._chosen(name, how):
            self._engines._later(0.0, self._delete, pod["metadata"]["uid"], _key(pod))

    async def drain(self, name: str, how: Tree) -> None:
        """Evict running pods of a TrainJob, or preempt them: `reason` says which."""
        for pod in self._chosen(name, how):
            self._engines._later(0.0, self._condemn, pod["metadata"]["uid"], _key(pod), how["reason"])

    async def lose_node(self, name: str, how: Tree) -> None:
        """Lose the nodes of running pods of a TrainJob."""
        kubelet = self._engines.kubelet
        for pod in self._chosen(name, how):
            if kubelet is not None and kubelet.lose(pod):
                uid, key = pod["metadata"]["uid"], _key(pod)
                tainted = self._random.uniform(*TAINTED_SECONDS)
                later = tainted + self._random.uniform(*COLLECTED_SECONDS)
                self._engines._later(tainted, self._condemn, uid, key, "DeletionByTaintManager")
                if self._random.random() < 0.3:
                    self._engines._later(later, kubelet.find, uid)
                else:
                    self._engines._later(later, self._collect, uid, key)

    def _chosen(self, name: str, how: Tree) -> list[Tree]:
        """Return the running pods that an action is about: one, or all."""
        kubelet = self._engines.kubelet
        running = [] if kubelet is None else kubelet.running(name)
        index = how.get("index")
        return running if index is None or not running else [running[index % len(running)]]

    def _find(self, uid: str, key: Key) -> Tree | None:
        pod = self._server.find(_PODS, key)
        return pod if pod is not None and pod["metadata"]["uid"] == uid else None

    def _condemn(self, uid: str, key: Key, reason: str) -> None:
        """Write the condition DisruptionTarget of a pod, and delete it a moment later."""
        pod = self._find(uid, key)
        if pod is None or job.phase(pod) not in {"Pending", "Running"}:
            return
        self._server.put(PODS, disrupted(pod, reason, stamp(self._server)), "admin")
        self._engines._later(self._random.uniform(0.001, 0.3), self._delete, uid, key)

    def _delete(self, uid: str, key: Key) -> None:
        pod = self._find(uid, key)
        kubelet = self._engines.kubelet
        if pod is not None and kubelet is not None and not job.goes(pod):
            self._server.put(PODS, {**pod, "metadata": {**pod["metadata"], **kubelet.mark(pod)}}, "user")

    def _collect(self, uid: str, key: Key) -> None:
        """Fail a pod whose node is gone, and remove it."""
        pod = self._find(uid, key)
        if pod is not None and job.phase(pod) in {"Pending", "Running"}:
            failed = disrupted(pod, "DeletionByPodGC", stamp(self._server))
            self._server.put(PODS, {**failed, "status": {**failed["status"], "phase": "Failed"}}, "admin")
            self._engines._later(self._random.uniform(0.2, 1.5), self._remove, uid, key)

    def _remove(self, uid: str, key: Key) -> None:
        pod = self._find(uid, key)
        if pod is not None:
            self._engines.leave(pod)


def disrupted(pod: Tree, reason: str, now: str) -> Tree:
    """Return a pod with the condition DisruptionTarget."""
    others = [one for one in pod["status"]["conditions"] if one["type"] != "DisruptionTarget"]
    before = [one for one in pod["status"]["conditions"] if one["type"] == "DisruptionTarget"]
    since = before[0]["lastTransitionTime"] if before else now
    target = {"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": since}
    return {**pod, "status": {**pod["status"], "conditions": [*others, target]}}


def _key(pod: Tree) -> Key:
    return Key(pod["metadata"]["namespace"], pod["metadata"]["name"])
