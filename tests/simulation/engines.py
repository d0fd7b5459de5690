"""What acts in a cluster beside us: JobSet, the Job controller, the kubelet and the garbage collector.

Each acts on the truth after a delay that is drawn, one object at a time, as controllers do. Jobs are objects here too,
since JobSet's counts are counts of Jobs; nobody of ours looks at them.

- JobSet does what `jobset` says, and deletes a JobSet a while after its end (`ttlSecondsAfterFinished`).
- Job does what `job` says; one that JobSet deletes stays until its pods have left.
- The kubelet gives a pod a machine, runs it, and ends it as it is fated; `kubelet` runs pods that react to stops.
- The garbage collector deletes what has no owner. A JobSet that is deleted in the foreground is removed after its Jobs
  and pods.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.simulation import job
from tests.simulation.jobset import condition, ended, judge, owner
from tests.simulation.loop import START
from trainplane.kube.errors import InternalServerError
from trainplane.kube.resource import Key, Resource
from trainplane.kube.testing.verbs import collection_of
from trainplane.resources import CONFIG_MAPS, JOB_SETS, PODS, TRAIN_JOBS, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.simulation.apiserver import ApiServer
    from tests.simulation.kubelet import Kubelet
    from tests.simulation.loop import VirtualLoop
    from trainplane.kube.testing.storage import Change, Collection, Tree

JOBS = Resource("batch", "v1", "jobs", "Job")

_JOBSETS, _JOBS, _PODS = collection_of(JOB_SETS), collection_of(JOBS), collection_of(PODS)

OWNED = {collection_of(one): one for one in (JOB_SETS, JOBS, PODS, CONFIG_MAPS, WORKLOADS)}
OWNERS = {
    "TrainJob": collection_of(TRAIN_JOBS),
    "JobSet": _JOBSETS,
    "Job": _JOBS,
}


UNKNOWN = 137
"""The exit code of a container that was said to run and is nowhere."""

QUICK = 0.5
"""The longest that one takes to act, as a rule."""


class Engines:
    """All of them. `fate` says how a pod ends, and after how long; without one, pods are somebody else's to run."""

    def __init__(
        self,
        server: ApiServer,
        loop: VirtualLoop,
        random: Random,
        fate: Callable[[Tree], tuple[float, int]] | None,
        kubelet: Kubelet | None = None,
    ) -> None:
        self._server = server
        self._loop = loop
        self._random = random
        self._fate = fate
        self.kubelet = kubelet
        if kubelet is not None:
            kubelet.later = self._later
        self.quick = QUICK
        self.slow_collector = 5.0
        """The longest that the garbage collector takes."""
        self._due: set[tuple[str, Key]] = set()
        self._fates: dict[str, tuple[float, int]] = {}
        """When the containers of a pod end, and how, by its uid: what a kubelet knows, whatever is stored."""
        self._acts: dict[str, Callable[[Key], None]] = {
            "jobset": self._jobset,
            "job": self._job,
            "pod": self._pod,
        }
        server.storage.listeners.append(self._changed)

    # -- being told

    def _changed(self, change: Change, _: str) -> None:
        if change.collection == _JOBSETS:
            self._soon("jobset", change.key)
        elif change.collection == _JOBS:
            self._soon("job", change.key)
            self._owner(change, "jobset")
        elif change.collection == _PODS:
            self._soon("pod", change.key)
            self._owner(change, "job")
        if change.collection in OWNED and change.before is None and change.after is not None:
            self._later(self._random.uniform(0, self.slow_collector), self._collect, change.collection, change.key)
        if change.after is None and change.before is not None:
            self._orphaned(change.before["metadata"]["uid"])

    def _owner(self, change: Change, what: str) -> None:
        tree = change.after or change.before or {}
        for one in tree["metadata"].get("ownerReferences") or ():
            self._soon(what, Key(change.key.namespace, one["name"]))

    def _soon(self, what: str, key: Key, after: float = 0.0) -> None:
        if (what, key) in self._due and not after:
            return
        self._due.add((what, key))
        self._later(after + self._random.uniform(0.005, self.quick), self._act, what, key)

    def _later(self, after: float, act: Callable[..., None], *arguments: Any) -> None:
        self._loop.call_later(after, self._try, act, arguments)

    def _try(self, act: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Act, and again some seconds later if nothing can be written."""
        try:
            act(*arguments)
        except InternalServerError:
            self._later(self._random.uniform(1.0, 5.0), act, *arguments)

    def _act(self, what: str, key: Key) -> None:
        self._due.discard((what, key))
        self._acts[what](key)

    def _put(self, resource: Resource, obj: Tree) -> Tree:
        return self._server.put(resource, obj, "engines")

    def _stamp(self) -> str:
        return self._server.storage._stamp()

    def look_again(self) -> None:
        """Look at everything, as all of them do when what is stored was set back and they are started anew."""
        objects = self._server.storage.objects
        for collection, what in ((_JOBSETS, "jobset"), (_JOBS, "job"), (_PODS, "pod")):
            for key in objects.get(collection, {}):
                self._soon(what, key)
        for collection in OWNED:
            for key in objects.get(collection, {}):
                self._later(self._random.uniform(0.01, self.slow_collector), self._collect, collection, key)
        for found in filter(job.goes, objects.get(_JOBS, {}).values()):
            self._dismiss(found)
        if self.kubelet is not None:
            self.kubelet.look_again()
        for key, pod in list(objects.get(_PODS, {}).items()):
            if job.phase(pod) == "Running" and not job.goes(pod) and not self._reacts(pod):
                self._find_containers(key, pod["metadata"]["uid"])

    # -- JobSet

    def _jobset(self, key: Key) -> None:
        found = self._server.find(_JOBSETS, key)
        if found is None:
            return
        if job.goes(found):
            self._dismiss_jobs(found)
            return
        verdict = judge(found, self._owned(_JOBS, found), self._stamp())
        for one in verdict.drop:
            self._drop(one)
        for one in verdict.make:
            if self._server.find(_JOBS, Key(key.namespace, one["metadata"]["name"])) is None:
                self._put(JOBS, one)
        for one in verdict.change:
            self._put(JOBS, one)
        if verdict.jobset.get("status") != found.get("status"):
            self._put(JOB_SETS, verdict.jobset)
        if ended(found):
            self._expire(found)

    def _drop(self, found: Tree) -> None:
        """Delete a Job in the foreground: it stays until its pods have left, whom the garbage collector tells to."""
        if not job.goes(found):
            self._put(JOBS, {**found, "metadata": {**found["metadata"], "deletionTimestamp": self._stamp()}})
            self._dismiss(found)

    def _dismiss_jobs(self, jobset: Tree) -> None:
        """Let the garbage collector delete the Jobs of a JobSet that is deleted in the foreground, and then itself."""
        jobs = self._owned(_JOBS, jobset)
        key = Key(jobset["metadata"]["namespace"], jobset["metadata"]["name"])
        for one in jobs:
            if not job.goes(one):
                after = self._random.uniform(0.01, self.slow_collector)
                self._later(after, self._drop_now, one["metadata"]["uid"], key)
        if not jobs:
            self._server.storage.writer = "engines"
            self._server.storage._remove(_JOBSETS, key, jobset)

    def _drop_now(self, uid: str, owner_key: Key) -> None:
        """Delete a Job of a JobSet in the foreground, as it is by now."""
        jobset = self._server.find(_JOBSETS, owner_key)
        for one in () if jobset is None else self._owned(_JOBS, jobset):
            if one["metadata"]["uid"] == uid:
                self._drop(one)

    def _dismiss(self, found: Tree) -> None:
        """Let the garbage collector tell the pods of a Job that goes to go too."""
        for pod in self._owned(_PODS, found):
            self._later(self._random.uniform(0.01, self.slow_collector), self._delete, _PODS, pod)

    def _owned(self, collection: Collection, obj: Tree) -> list[Tree]:
        storage = self._server.storage
        owned = storage.owned.get(obj["metadata"]["uid"], ())
        return [storage.objects[kind][key] for kind, key in owned if kind == collection]

    def _expire(self, jobset: Tree) -> None:
        seconds = jobset["spec"].get("ttlSecondsAfterFinished")
        if seconds is None:
            return
        told = condition(jobset, ended(jobset)) or {}
        since = (datetime.fromisoformat(told["lastTransitionTime"]) - START).total_seconds()
        left = since + seconds - self._loop.time()
        if left <= 0:
            self._delete(_JOBSETS, jobset)
        else:
            self._soon("jobset", Key(jobset["metadata"]["namespace"], jobset["metadata"]["name"]), left)

    # -- Job

    def _job(self, key: Key) -> None:
        found = self._server.find(_JOBS, key)
        if found is None or job.is_over(found):
            return
        pods = self._owned(_PODS, found)
        if job.goes(found) and not pods:
            self._server.storage.writer = "engines"
            self._server.storage._remove(_JOBS, key, found)
            return
        verdict = job.judge(found, pods, self._stamp())
        for pod in verdict.drop:
            self._delete(_PODS, _released(pod) if verdict.release else pod)
        for index in verdict.make:
            self._put(PODS, pod_of(found, index, self._stamp(), self._server.storage.revision))
        if verdict.wait:
            self._soon("job", key, verdict.wait)
        if verdict.job.get("status") != found.get("status"):
            self._put(JOBS, verdict.job)

    # -- the kubelet

    def _pod(self, key: Key) -> None:
        pod = self._server.find(_PODS, key)
        if pod is None or self._fate is None:
            return
        if self.kubelet is not None and self._reacts(pod):
            self.kubelet.look(pod)
            return
        if job.goes(pod):
            self._later(self._random.uniform(0.0, 2.0), self._gone, key, pod["metadata"]["uid"])
        elif job.phase(pod) == "Pending":
            self.show(pod, "Running")
            uid = pod["metadata"]["uid"]
            if uid in self._fates:  # it was set back to before it began
                self._find_containers(key, uid)
                return
            seconds, code = self._fate(pod)
            self._fates[uid] = self._loop.time() + seconds, code
            self._later(seconds, self._ends, key, uid, code)

    def _reacts(self, pod: Tree) -> bool:
        """Return whether a pod is one that its TrainJob says more of than how it ends."""
        return self.kubelet is not None and self.kubelet.kind(pod) is not None

    def _ends(self, key: Key, uid: str, code: int) -> None:
        pod = self._server.find(_PODS, key)
        if pod is not None and pod["metadata"]["uid"] == uid and not job.goes(pod):
            self.show(pod, "Failed" if code else "Succeeded", code)

    def _find_containers(self, key: Key, uid: str) -> None:
        """Say what became of the containers of a pod that is stored as running: those that nobody has any more failed.

        A kubelet says ContainerStatusUnknown of them, and 137.
        """
        at, code = self._fates.get(uid, (0.0, UNKNOWN))
        if at <= self._loop.time():
            self._later(self._random.uniform(0.0, 2.0), self._ends, key, uid, code)

    def show(self, pod: Tree, phase: str, code: int | None = None) -> None:
        """Show what became of a pod."""
        self._put(PODS, _shown(pod, phase, self._stamp(), code))

    def _gone(self, key: Key, uid: str) -> None:
        pod = self._server.find(_PODS, key)
        if pod is not None and pod["metadata"]["uid"] == uid:
            self.leave(pod)

    def leave(self, pod: Tree) -> None:
        """Let a pod go that was told to, its containers stopped."""
        self._fates.pop(pod["metadata"]["uid"], None)
        if self.kubelet is not None:
            self.kubelet.forget(pod["metadata"]["uid"])
        self._server.storage.writer = "engines"
        self._server.storage._remove(_PODS, Key(pod["metadata"]["namespace"], pod["metadata"]["name"]), pod)

    # -- the garbage collector

    def _delete(self, collection: Collection, obj: Tree) -> None:
        key = Key(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        now = self._server.find(collection, key)
        if now is None or now["metadata"]["uid"] != obj["metadata"]["uid"]:
            return
        if collection == _PODS:
            if job.phase(now) in {"Succeeded", "Failed"}:
                self.leave(now)
            elif not job.goes(now):
                mark = {"deletionTimestamp": self._stamp()} if self.kubelet is None else self.kubelet.mark(now)
                self._put(PODS, {**now, "metadata": {**obj["metadata"], **mark}})
            return
        self._server.storage.writer = "engines"
        self._server.storage.delete(collection, key)

    def remove(self, collection: Collection, key: Key) -> None:
        """Delete an object, as somebody does who may."""
        found = self._server.find(collection, key)
        if found is not None:
            self._delete(collection, found)

    def _orphaned(self, uid: str) -> None:
        owned = self._server.storage.owned.get(uid, ())
        for collection in OWNED:
            for key in [key for kind, key in owned if kind == collection]:
                after = self._random.uniform(0.01, self.slow_collector)
                self._later(after, self._collect, collection, key)

    def _collect(self, collection: Collection, key: Key) -> None:
        """Delete an object whose owner is gone."""
        obj = self._server.find(collection, key)
        if obj is None:
            return
        for one in obj["metadata"].get("ownerReferences") or ():
            owners = OWNERS.get(one["kind"])
            owner = None if owners is None else self._server.find(owners, Key(key.namespace, one["name"]))
            if owner is None or owner["metadata"]["uid"] != one["uid"]:
                self._delete(collection, obj)
                return


def pod_of(made_by: Tree, index: int, now: str, serial: int) -> Tree:
    """Return a pod as the Job controller makes it."""
    made_from = made_by["spec"].get("template") or {}
    index_label = {"batch.kubernetes.io/job-completion-index": str(index)}
    labels = {**((made_from.get("metadata") or {}).get("labels") or {}), **made_by["metadata"]["labels"], **index_label}
    template = made_from.get("spec") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{made_by['metadata']['name']}-{index}-{serial:05d}",
            "namespace": made_by["metadata"]["namespace"],
            "creationTimestamp": now,
            "labels": labels,
            "finalizers": [job.TRACKED],
            "ownerReferences": [owner(made_by)],
        },
        "spec": {**template},
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]},
    }


def _released(pod: Tree) -> Tree:
    """Return a pod that its Job does not hold any more."""
    return {**pod, "metadata": {name: value for name, value in pod["metadata"].items() if name != "finalizers"}}


def _shown(pod: Tree, phase: str, now: str, code: int | None = None) -> Tree:
    state: Tree = {"running": {"startedAt": now}}
    if code is not None:
        state = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": now}}
    ready = {"type": "Ready", "status": "True" if phase == "Running" else "False"}
    shown = [{"name": one["name"], "restartCount": 0, "state": state} for one in pod["spec"].get("containers") or ()]
    status = {
        "phase": phase,
        "conditions": [{"type": "PodScheduled", "status": "True"}, ready],
        "containerStatuses": shown,
    }
    return {**pod, "spec": {**pod["spec"], "nodeName": "machine"}, "status": status}
