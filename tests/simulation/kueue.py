"""Kueue v0.19 with one queue and two flavors, as a small model, compared with the engine (`test_models`).

A Workload for each TrainJob of the queue that no gate holds; admitted in the order of creation to the first flavor that
has quota left for all its pods. Start: one update of Kueue's patch entry while the TrainJob is suspended, and one of
`suspend`; without an entry it never starts. Eviction: `suspend: true`, and when the TrainJob's status counts no active
Job, the entry as it was; then the quota is free again. Finished or deleted, it is free at once. What runs without quota
is held back again.

A TrainJob that is MultiKueue's is another cluster's to run: all that comes back is its status.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.simulation.apiserver import TRAINJOBS
from tests.simulation.people import FATE, GATES, MULTIKUEUE, QUEUE_LABEL, ask
from trainplane.kube.errors import ApiError, InternalServerError, NotFoundError
from trainplane.kube.testing.storage import key_of
from trainplane.resources import TRAIN_JOBS

if TYPE_CHECKING:
    from random import Random

    from tests.simulation.apiserver import ApiServer
    from trainplane.kube.resource import Key
    from trainplane.kube.testing.storage import Change, Tree

MANAGER = "kueue.x-k8s.io/manager"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
"""Who has it goes before those that have not."""
FLAVORS = ("spot", "reserved")
QUOTA = 4
"""Pods that all flavors have together; an administrator moves them from one to the other."""
COUNTS = {"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}


def of_the_first(pods: int) -> dict[str, int]:
    """Return quota by flavor: so many pods of the first, and none of the others."""
    return dict.fromkeys(FLAVORS, 0) | {FLAVORS[0]: pods}


@dataclass
class Workload:
    """What Kueue knows of a TrainJob."""

    key: Key
    uid: str
    pods: int
    serial: int
    flavor: str = ""
    """Where its quota is reserved; empty if it is not."""
    evicted: bool = False
    """Whether it is being stopped; the quota is held until it has."""
    over: bool = False
    active: bool = True
    """Whether it may be admitted; who is not is evicted, and its quota others' at once (`spec.active`)."""
    priority: int = 0


class Kueue:
    """See the module's docstring."""

    def __init__(self, server: ApiServer, random: Random) -> None:
        self._server = server
        self._random = random
        self._news = asyncio.Event()
        self._serial = 0
        self.workloads: dict[str, Workload] = {}
        """By the TrainJob's uid."""
        self.quota = of_the_first(QUOTA)
        """Pods that each flavor has, in the order in which they are tried."""
        self._sent: set[str] = set()
        """TrainJobs that another cluster has, by uid."""
        self._restores = 0
        server.storage.listeners.append(self._changed)

    def backup(self) -> tuple[dict[str, Workload], dict[str, int]]:
        """Return what of it is stored: Workloads and quota."""
        return {uid: replace(one) for uid, one in self.workloads.items()}, dict(self.quota)

    def restore(self, kept: tuple[dict[str, Workload], dict[str, int]]) -> None:
        """Go on with what was stored then; what other clusters run is brought anew."""
        self.workloads, self.quota = kept
        self._restores += 1
        self._sent.clear()
        self._news.set()

    def _changed(self, change: Change, _: str) -> None:
        if change.collection != TRAINJOBS:
            return
        if change.after is None:
            self.workloads.pop((change.before or {})["metadata"]["uid"], None)
        self._news.set()

    def used(self, flavor: str = "") -> int:
        """Return how many pods of the quota are reserved, of a flavor or of all."""
        holders = (one for one in self.workloads.values() if one.flavor and one.active)
        return sum(one.pods for one in holders if flavor in {"", one.flavor})

    def move_quota(self) -> None:
        """Give the quota of one flavor to the other; what runs goes on where it is."""
        self.offer(dict(zip(self.quota, reversed(self.quota.values()), strict=True)))

    def offer(self, quota: dict[str, int]) -> None:
        """Give each flavor so many pods."""
        self.quota = quota
        self._news.set()

    async def run(self) -> None:
        """Act for ever, each time after a delay."""
        while True:
            await self._news.wait()
            self._news.clear()
            await asyncio.sleep(self._random.uniform(0.02, 0.6))
            jobs = list(self._server.storage.objects.get(TRAINJOBS, {}).items())
            for key, job in sorted(jobs, key=lambda one: -_priority(one[1])):
                if QUEUE_LABEL not in (job["metadata"].get("labels") or {}):
                    continue
                if job["spec"].get("managedBy") == MULTIKUEUE:
                    self._dispatch(key, job)
                else:
                    await self._look(key, job)

    def evict(self, name: str) -> None:
        """Take the quota from a TrainJob: a preemption."""
        for one in self.workloads.values():
            if one.key.name == name and one.flavor and not one.over:
                one.evicted = True
                self._news.set()

    def deactivate(self, name: str, *, active: bool = False) -> None:
        """Take a TrainJob's quota and give it none until it is active again."""
        for one in self.workloads.values():
            if one.key.name == name and not one.over:
                one.active = active
                one.evicted = one.evicted or (bool(one.flavor) and not active)
                self._news.set()

    def _dispatch(self, key: Key, job: Tree) -> None:
        """Send a TrainJob to another cluster, which runs it as it is fated."""
        uid = job["metadata"]["uid"]
        if uid in self._sent or _finished(job) or job["metadata"]["annotations"].get(GATES):
            return
        self._sent.add(uid)
        seconds, code, *_ = map(int, job["metadata"]["annotations"][FATE].split())
        begins = self._random.uniform(2.0, 10.0)
        end = {"type": "Failed", "reason": "FailedJobs"} if code else {"type": "Complete", "reason": "AllJobsCompleted"}
        self._bring(begins, key, uid, {**COUNTS, "active": 1, "ready": 1})
        self._bring(begins + seconds, key, uid, {**COUNTS, "failed" if code else "succeeded": 1}, end)

    def _bring(self, after: float, key: Key, uid: str, counts: Tree, end: Tree | None = None) -> None:
        """Write what the other cluster says of a TrainJob into its status here, some time later."""
        restores = self._restores

        def write() -> None:
            job = self._server.find(TRAINJOBS, key)
            if job is None or job["metadata"]["uid"] != uid or self._restores != restores:
                return
            status = {**(job.get("status") or {}), "jobsStatus": [counts]}
            if end is not None:
                told = {"status": "True", "message": "by a worker", "lastTransitionTime": self._server.storage._stamp()}
                status["conditions"] = [{**end, **told}]
            try:
                self._server.put(TRAIN_JOBS, {**job, "status": status}, "kueue")
            except InternalServerError:
                asyncio.get_running_loop().call_later(self._random.uniform(1.0, 5.0), write)

        asyncio.get_running_loop().call_later(after, write)

    async def _look(self, key: Key, job: Tree) -> None:
        uid = job["metadata"]["uid"]
        one = self.workloads.get(uid)
        if one is None:
            self._serial += 1
            pods = job["spec"]["trainer"]["numNodes"]
            one = self.workloads[uid] = Workload(key, uid, pods, self._serial, priority=_priority(job))
        if _finished(job):
            if one.flavor:
                self._news.set()  # others may have its quota
            one.over, one.flavor, one.evicted = True, "", False
            return
        suspended = bool(job["spec"].get("suspend"))
        if one.evicted or not one.flavor:
            if not suspended:
                await self._write(job, suspend=True)
            elif one.flavor and not is_active(job) and await self._write(job, flavor=""):
                one.flavor, one.evicted = "", False
                self._news.set()
            elif not one.flavor and not is_active(job) and not _is_gated(job):
                one.flavor = self._room(one)
                if one.flavor:
                    self._news.set()
        elif suspended and (flavor_of(job) == one.flavor or await self._write(job, flavor=one.flavor)):
            await self._write(self._server.find(TRAINJOBS, key) or job, suspend=False)

    def _room(self, one: Workload) -> str:
        """Return the first flavor that a Workload fits in; empty if it has to wait."""
        if not one.active:
            return ""
        for flavor, quota in self.quota.items():
            if self.used(flavor) + one.pods <= quota:
                return flavor
        self._preempt(one)
        return ""

    def _preempt(self, one: Workload) -> None:
        """Evict those of less priority, the youngest first, until a Workload will fit in a flavor."""
        for flavor, quota in self.quota.items():
            lesser = [
                each for each in self.workloads.values() if each.flavor == flavor and each.priority < one.priority
            ]
            lesser.sort(key=lambda each: -each.serial)
            wanted = self.used(flavor) + one.pods - quota
            if lesser and sum(each.pods for each in lesser) >= wanted:
                while wanted > 0:
                    lesser[0].evicted = True
                    wanted -= lesser.pop(0).pods
                self._news.set()
                return

    async def _write(self, job: Tree, *, suspend: bool | None = None, flavor: str | None = None) -> bool:
        """Update a TrainJob as it was read; False if that was refused, and is tried again."""
        spec = {**job["spec"]}
        if suspend is not None:
            spec["suspend"] = suspend
        if flavor is not None:
            if not has_entry(job):
                return False  # "kueue runtime patch not found"
            spec["runtimePatches"] = [
                _entry(flavor) if one["manager"] == MANAGER else one for one in spec["runtimePatches"]
            ]
        try:
            await ask(self._server, "kueue", "update", TRAINJOBS, key_of(job), body={**job, "spec": spec})
        except NotFoundError:
            return False
        except ApiError:
            asyncio.get_running_loop().call_later(self._random.uniform(1.0, 5.0), self._news.set)
            return False
        return True


def _entry(flavor: str) -> Tree:
    pods = {"template": {"spec": {"template": {"spec": {"nodeSelector": {"flavor": flavor}}}}}}
    spec = {"replicatedJobs": [{"name": "node", **pods}]} if flavor else {}
    return {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": spec}}}


def has_entry(job: Tree) -> bool:
    """Return whether Kueue has its entry in a TrainJob, which it gets when it is made and never later.

    Kueue's webhook gives it to all, people here only to those that they make in a queue: one that comes into a queue
    later, by a file of another TrainJob of its name after a restore, waits here for ever.
    """
    return any(entry["manager"] == MANAGER for entry in job["spec"].get("runtimePatches") or ())


def flavor_of(job: Tree) -> str:
    """Return where Kueue's entry of a TrainJob places its pods."""
    for entry in job["spec"].get("runtimePatches") or ():
        if entry["manager"] == MANAGER:
            for one in entry["trainingRuntimeSpec"]["template"]["spec"].get("replicatedJobs") or ():
                return str(one["template"]["spec"]["template"]["spec"]["nodeSelector"]["flavor"])
    return ""


def _priority(job: Tree) -> int:
    return int(PRIORITY_LABEL in (job["metadata"].get("labels") or {}))


def _is_gated(job: Tree) -> bool:
    return bool((job["metadata"].get("annotations") or {}).get(GATES))


def _finished(job: Tree) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(one["type"] in {"Complete", "Failed"} and one["status"] == "True" for one in conditions)


def is_active(job: Tree) -> bool:
    """Return whether the status of a TrainJob counts an active Job."""
    return any(one.get("active") for one in (job.get("status") or {}).get("jobsStatus") or ())
