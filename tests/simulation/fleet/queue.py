"""Kueue v0.19 on one cluster of a fleet: TrainJobs by their Workloads, which MultiKueue copies, as objects.

What it does to a TrainJob is what the model of one cluster does (`kueue`), and is inherited from it. Its Workloads are
objects here, and all that it knows:

- on the hub it makes one for each TrainJob of the queue, with MultiKueue's check, and admits it when that is Ready; a
  check that says Retry evicts it, and an eviction sets the check back to Pending and forgets the worker;
- on a worker a Workload comes before its TrainJob, is admitted at once when there is quota, and belongs to the TrainJob
  that names it from when that is there; a TrainJob that names none that is there does not run.

One that is deactivated is evicted. One that Kueue made and somebody deletes stays until its TrainJob has stopped. A
queue that is drained (`stopPolicy: HoldAndDrain`) evicts all and admits nobody. What was evicted is queued again at
once if it was preempted, else when what evicted it has passed (`Requeued`). The ClusterQueue is an object too
(`offers`): its spec as administrators have it, its status as Kueue counts.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.simulation.apiserver import TRAINJOBS
from tests.simulation.fleet import offers
from tests.simulation.fleet import workload as wl
from tests.simulation.jobset import condition
from tests.simulation.kueue import Kueue, Workload, flavor_of, is_active
from tests.simulation.people import MULTIKUEUE, QUEUE_LABEL
from tests.simulation.settled import end_of
from trainplane.api import names
from trainplane.kube.resource import Key
from trainplane.kube.testing.storage import key_of
from trainplane.resources import CLUSTER_QUEUES, WORKLOADS

if TYPE_CHECKING:
    from random import Random

    from tests.simulation.apiserver import ApiServer
    from trainplane.kube.testing.storage import Change, Tree


PREEMPTED, STOPPED = "Preempted", "ClusterQueueStopped"
AGAIN = {
    "Deactivated": ("Reactivated", "The workload was reactivated"),
    "AdmissionCheck": ("BackoffFinished", "The workload backoff was finished"),
    STOPPED: ("ClusterQueueRestarted", "The ClusterQueue was restarted after being stopped"),
}
"""What Kueue says of a Workload that it queues again, by what evicted it."""


class Queue(Kueue):
    """See the module's docstring."""

    def __init__(self, server: ApiServer, random: Random, quota: dict[str, int], *, is_hub: bool) -> None:
        super().__init__(server, random)
        self.quota = quota
        self.is_hub = is_hub
        self.is_drained = False

    # -- being told, and what judges ask

    def _changed(self, change: Change, _: str) -> None:
        if change.collection == wl.COLLECTION:
            self._note(change)
        elif change.collection != TRAINJOBS:
            return
        self._news.set()

    def _note(self, change: Change) -> None:
        """Let judges know who has which quota, by the TrainJob's uid."""
        for tree in (change.before, change.after):
            uid = "" if tree is None else tree["metadata"]["labels"].get(names.LABEL_JOB_UID, "")
            if tree is not None and uid:
                self.workloads[uid] = Workload(change.key, uid, wl.pods_in(tree), 0, wl.flavor_in(tree))
        if change.after is None and change.before is not None:
            self.workloads.pop(change.before["metadata"]["labels"].get(names.LABEL_JOB_UID, ""), None)

    def used(self, flavor: str = "") -> int:
        """Return how many pods of the quota are reserved, of a flavor or of all."""
        holders = [one for one in self.all() if wl.flavor_in(one) and flavor in {"", wl.flavor_in(one)}]
        return sum(map(wl.pods_in, holders))

    def takes(self, pods: int) -> bool:
        """Return whether it would admit so many pods now."""
        return not self.is_drained and any(self.used(one) + pods <= quota for one, quota in self.quota.items())

    def evict(self, name: str) -> None:
        """Take the quota from a TrainJob: a preemption."""
        for one in self.all():
            if one["metadata"]["name"].startswith(f"trainjob-{name}-") and wl.flavor_in(one):
                self._evict(one, PREEMPTED)

    def drain(self, *, drained: bool) -> None:
        """Evict all and admit nobody, or admit again."""
        self.is_drained = drained
        self.publish()
        self._news.set()

    def delete(self, key: Key) -> None:
        """Delete a Workload: one that Kueue made stays until its TrainJob has stopped, as its finalizer says."""
        one = self._server.find(wl.COLLECTION, key)
        if one is not None and self.is_hub:
            self._put({**one, "metadata": {**one["metadata"], "deletionTimestamp": self._stamp()}})
        elif one is not None:
            self._remove(one)

    def _remove(self, one: Tree) -> None:
        self._server.storage.writer = "kueue"
        self._server.storage.delete(wl.COLLECTION, key_of(one))

    def offer(self, quota: dict[str, int]) -> None:
        """Give each flavor so many pods."""
        super().offer(quota)
        self.publish()

    def publish(self) -> None:
        """Write the ClusterQueue as it stands."""
        self._server.put(CLUSTER_QUEUES, self._object(), "kueue")

    def is_published(self) -> bool:
        """Return whether the ClusterQueue says what is so: what a Workload gives back is counted a moment later."""
        found = self._server.find(offers.COLLECTION, Key("", wl.CLUSTER_QUEUE))
        return found is not None and found["status"] == self._object()["status"]

    def _object(self) -> Tree:
        used = {flavor: self.used(flavor) for flavor in self.quota}
        policy = "HoldAndDrain" if self.is_drained else "None"
        return offers.cluster_queue(wl.CLUSTER_QUEUE, self.quota, used, policy=policy, is_hub=self.is_hub)

    def all(self) -> list[Tree]:
        """Return the Workloads that are there."""
        return list(self._server.storage.objects.get(wl.COLLECTION, {}).values())

    def _put(self, workload: Tree) -> None:
        self._server.put(WORKLOADS, workload, "kueue")

    def _stamp(self) -> str:
        return self._server.storage._stamp()

    # -- acting

    async def run(self) -> None:
        """Act for ever, each time after a delay."""
        while True:
            await self._news.wait()
            self._news.clear()
            await asyncio.sleep(self._random.uniform(0.02, 0.6))
            for one in self.all():
                self._schedule(one)
            for key, job in list(self._server.storage.objects.get(TRAINJOBS, {}).items()):
                if QUEUE_LABEL in (job["metadata"].get("labels") or {}):
                    await self._look(key, job)
            self.publish()

    def _schedule(self, one: Tree) -> None:
        """Reserve, admit or evict, as a Workload stands."""
        if wl.says(one, wl.FINISHED) or wl.goes(one) or (wl.says(one, wl.EVICTED) and wl.flavor_in(one)):
            return
        if wl.says(one, wl.DEACTIVATE) and one["spec"]["active"]:
            self._evict({**one, "spec": {**one["spec"], "active": False}}, "DeactivatedDueToEvictedOnManagerCluster")
        elif not one["spec"]["active"]:
            if not wl.says(one, wl.EVICTED):
                self._evict(one, "Deactivated")
        elif not wl.flavor_in(one) and wl.denies(one, wl.REQUEUED):
            self._requeue(one)
        elif not wl.flavor_in(one):
            self._reserve(one)
        elif self.is_drained:
            self._evict(one, STOPPED)
        elif wl.check_of(one) == wl.RETRY:
            self._evict(one, "AdmissionCheck")
        elif wl.check_of(one) in {"", wl.READY} and not wl.says(one, wl.ADMITTED):
            self._put(wl.told(one, wl.ADMITTED, "Admitted", "The workload is admitted", self._stamp()))

    def _reserve(self, one: Tree) -> None:
        job = self._job_of(one)
        if self.is_drained or (job is not None and is_active(job)):
            return
        for flavor, quota in self.quota.items():
            if self.used(flavor) + wl.pods_in(one) <= quota:
                now = self._stamp()
                after = wl.with_status(one, admission=wl.assigned(flavor, wl.pods_in(one)))
                after = wl.told(after, wl.RESERVED, "QuotaReserved", f"Quota reserved in {flavor}", now)
                if wl.says(one, wl.EVICTED):
                    after = wl.told(after, wl.EVICTED, "QuotaReserved", "Previously: evicted", now, value=False)
                self._put(after)
                return
        self._put(wl.told(one, wl.RESERVED, "Pending", self._shortage(one), self._stamp(), value=False))

    def _shortage(self, one: Tree) -> str:
        """Return what Kueue says of a Workload that fits no flavor."""
        pods, said = wl.pods_in(one), []
        for flavor, quota in self.quota.items():
            of = f"for pods in flavor {flavor}"
            if pods > quota:
                request = f"previously considered podsets requests (0) + current podset request ({pods})"
                said.append(f"insufficient quota {of}, {request} > maximum capacity ({quota})")
            else:
                said.append(f"insufficient unused quota {of}, {pods + self.used(flavor) - quota} more needed")
        return f"couldn't assign flavors to pod set node: {', '.join(said)}"

    def _requeue(self, one: Tree) -> None:
        """Queue a Workload again when what evicted it has passed."""
        reason = (condition(one, wl.REQUEUED) or {})["reason"]
        if one["spec"]["active"] and not (reason == STOPPED and self.is_drained):
            again, said = AGAIN[reason]
            self._put(wl.told(one, wl.REQUEUED, again, said, self._stamp()))

    def _evict(self, one: Tree, reason: str) -> None:
        """Say that a Workload is to stop; what was found out of workers is void."""
        after = wl.with_status(wl.untold(one, wl.DEACTIVATE), clusterName=None, nominatedClusterNames=None)
        after = wl.told(after, wl.EVICTED, reason, f"The workload is evicted: {reason}", self._stamp())
        self._put(wl.checked(after, wl.PENDING) if self.is_hub else after)
        if self._job_of(one) is None:
            self._release(key_of(one))

    def _release(self, key: Key) -> None:
        """Give the quota of a Workload back."""
        one = self._server.find(wl.COLLECTION, key)
        if one is None:
            return
        now = self._stamp()
        after = wl.with_status(one, admission=None)
        evicted = condition(one, wl.EVICTED) or {"reason": PREEMPTED, "message": ""}
        is_queued = evicted["reason"] == PREEMPTED
        after = wl.told(after, wl.REQUEUED, evicted["reason"], evicted["message"], now, value=is_queued)
        for kind in (wl.RESERVED, wl.ADMITTED):
            if wl.says(one, kind):
                after = wl.told(after, kind, "Pending", "The workload is evicted", now, value=False)
        self._put(after)

    def _finish(self, one: Tree, job: Tree) -> None:
        end = end_of(job)
        if end is not None and not wl.says(one, wl.FINISHED):
            reason = "Succeeded" if end[0] == "Complete" else "Failed"
            after = wl.told(wl.with_status(one, admission=None), wl.FINISHED, reason, end[1], self._stamp())
            self._put(after)

    async def _look(self, key: Key, job: Tree) -> None:
        if self.is_hub and job["spec"].get("managedBy") != MULTIKUEUE:
            return
        one = self._workload_of(job)
        if one is None:
            if self.is_hub and end_of(job) is None:
                made = wl.made_for(job)
                self._put({**made, "metadata": {**made["metadata"], "creationTimestamp": self._stamp()}})
            elif not job["spec"].get("suspend") and end_of(job) is None:
                await self._write(job, suspend=True)
        elif names.LABEL_JOB_UID not in one["metadata"]["labels"]:
            self._put(wl.adopted(one, job))
        elif end_of(job) is not None:
            self._finish(one, job)
        else:
            await self._turn(key, job, one)

    async def _turn(self, key: Key, job: Tree, one: Tree) -> None:
        """Hold a TrainJob back, or let it run."""
        suspended, flavor = bool(job["spec"].get("suspend")), wl.flavor_in(one)
        stops = wl.says(one, wl.EVICTED) or wl.goes(one)
        if stops or not wl.says(one, wl.ADMITTED):
            if not suspended:
                await self._write(job, suspend=True)
            elif stops and flavor and not is_active(job) and await self._write(job, flavor=""):
                self._remove(one) if wl.goes(one) else self._release(key_of(one))
        elif not suspended:
            return
        elif flavor_of(job) == flavor or await self._write(job, flavor=flavor):
            await self._write(self._server.find(TRAINJOBS, key) or job, suspend=False)

    def _workload_of(self, job: Tree) -> Tree | None:
        """Return the Workload of a TrainJob: the one that it names, on the hub the one that was made for it."""
        name = wl.made_for(job)["metadata"]["name"] if self.is_hub else wl.prebuilt(job)
        return self._server.find(wl.COLLECTION, Key(job["metadata"]["namespace"], name))

    def _job_of(self, one: Tree) -> Tree | None:
        """Return the TrainJob that a Workload belongs to, if it is there."""
        for reference in one["metadata"].get("ownerReferences") or ():
            job = self._server.find(TRAINJOBS, Key(one["metadata"]["namespace"], reference["name"]))
            if job is not None and job["metadata"]["uid"] == reference["uid"]:
                return job
        return None
