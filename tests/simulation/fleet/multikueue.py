"""MultiKueue on the hub, as a small model: a Workload and its copies, and what follows from how they stand.

Written from Kueue v0.19's source and compared with the engine (`test_models`).

Of a Workload with quota it makes a copy on every worker that it reaches; the first that is admitted has the job, and
the other copies go. There it makes the TrainJob's copy, without Kueue's entry, which names the Workload; from then on
it copies that one's status back, as far as Kueue knows it. Deleted, finished or without quota here, both copies go.

- A worker that evicts what it has: the check says Retry, and all begins anew when nothing is active any more.
- Evicted here: the worker is told to (`DeactivationTarget`), and its status is copied until nothing is active.
- A copy whose spec is no longer the Workload's, as when that is deactivated, goes with its TrainJob at once. A Workload
  that is evicted and has no copy is offered anew: the new copy counts nothing, which is how it is let go of.
- A worker that is not reached: nothing for `LOST_SECONDS`, then Retry, and the others are asked. When it is back, whose
  copy was admitted first has the job: its own, whatever runs elsewhere meanwhile.
- Copies that no Workload of the hub has are looked for every `SWEEP_SECONDS` and go with their TrainJobs.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulation.apiserver import TRAINJOBS
from tests.simulation.fleet import workload as wl
from tests.simulation.jobset import condition
from tests.simulation.kueue import MANAGER
from tests.simulation.people import ask
from trainplane.api import names
from trainplane.kube.errors import AlreadyExistsError, ApiError, NotFoundError
from trainplane.kube.resource import Key
from trainplane.kube.testing.storage import key_of
from trainplane.resources import TRAIN_JOBS, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from random import Random

    from tests.simulation.apiserver import ApiServer
    from tests.simulation.loop import VirtualLoop
    from trainplane.kube.testing.storage import Change, Tree

LOST_SECONDS = 900.0
"""Kueue's `workerLostTimeout`."""
SWEEP_SECONDS = 60.0
"""Kueue's `gcInterval`."""
KNOWN = ("conditions", "jobsStatus")
"""What Kueue knows of a TrainJob's status, and copies; the rest it leaves alone."""


class LostError(Exception):
    """A worker is not reached."""


@dataclass
class Way:
    """MultiKueue's connection to a worker."""

    server: ApiServer
    cuts: int = 0
    """Why the network is cut, counted."""
    mended: float = float("-inf")
    """When it was last not any more."""
    is_up: bool = True
    """Whether MultiKueue believes that it is connected."""
    lost: float = float("inf")
    """Since when it does not."""

    @property
    def is_cut(self) -> bool:
        """Whether nothing comes through."""
        return self.cuts > 0


class MultiKueue:
    """See the module's docstring."""

    def __init__(self, hub: ApiServer, workers: Mapping[str, ApiServer], loop: VirtualLoop, random: Random) -> None:
        self._hub = hub
        self._loop = loop
        self._random = random
        self._news = asyncio.Event()
        self.ways = {name: Way(server) for name, server in workers.items()}
        self._gone: dict[Key, str] = {}
        """Workloads that were deleted here and whose copies are still to go, with the names of their TrainJobs."""
        hub.storage.listeners.append(self._changed)
        for way in self.ways.values():
            way.server.storage.listeners.append(self._hears(way))

    # -- being told

    def _changed(self, change: Change, _: str) -> None:
        if change.collection != wl.COLLECTION:
            return
        if change.after is None and change.before is not None:
            self._gone[change.key] = change.before["metadata"]["ownerReferences"][0]["name"]
        self._news.set()

    def _hears(self, way: Way) -> Callable[[Change, str], None]:
        """Return who hears of a worker's changes, while there is a connection."""

        def changed(change: Change, _: str) -> None:
            if way.is_up and not way.is_cut and change.collection in {wl.COLLECTION, TRAINJOBS}:
                self._news.set()

        return changed

    @contextlib.contextmanager
    def cut(self, name: str) -> Iterator[None]:
        """Break the connection to a worker for the time of a block; either is noticed a while later."""
        way = self.ways[name]
        way.cuts += 1
        self._loop.call_later(self._random.uniform(0.1, 5.0), self._connect, way)
        yield
        way.cuts -= 1
        way.mended = self._loop.time()
        self._loop.call_later(self._random.uniform(0.5, 10.0), self._connect, way)

    def was_cut(self, name: str, seconds: float) -> bool:
        """Return whether a worker is cut off, or was within so many seconds."""
        way = self.ways[name]
        return way.is_cut or self._loop.time() - way.mended < seconds

    def _connect(self, way: Way) -> None:
        way.lost = self._loop.time() if way.is_cut and way.is_up else way.lost
        way.is_up = not way.is_cut
        self._news.set()

    # -- acting

    async def run(self) -> None:
        """Act for ever, each time after a delay."""
        while True:
            await self._news.wait()
            self._news.clear()
            await asyncio.sleep(self._random.uniform(0.02, 0.6))
            for key, name in list(self._gone.items()):
                with self._trying():
                    for worker in self._reached():
                        await self._remove(worker, key, name)
                    del self._gone[key]
            for key in sorted(self._hub.storage.objects.get(wl.COLLECTION, {})):
                with self._trying():
                    await self._reconcile(key)

    async def sweep(self) -> None:
        """Let copies go that no Workload of the hub has, for ever."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            for worker in self._reached():
                for key, copy in list(self.ways[worker].server.storage.objects.get(wl.COLLECTION, {}).items()):
                    if self._hub.find(wl.COLLECTION, key) is None:
                        owners = copy["metadata"].get("ownerReferences") or ()
                        with self._trying():
                            await self._remove(worker, key, owners[0]["name"] if owners else "")

    @contextlib.contextmanager
    def _trying(self) -> Iterator[None]:
        """Try again after a while where something does not work."""
        try:
            yield
        except (LostError, ApiError):
            self._again(self._random.uniform(1.0, 5.0))

    def _again(self, seconds: float) -> None:
        self._loop.call_later(seconds, self._news.set)

    def _reached(self) -> list[str]:
        return [name for name, way in self.ways.items() if way.is_up]

    async def _reach(self, worker: str) -> ApiServer:
        """Return a worker's API server, a moment later; raises LostError."""
        await asyncio.sleep(self._random.uniform(0.001, 0.05))
        if self.ways[worker].is_cut:
            raise LostError
        return self.ways[worker].server

    async def _reconcile(self, key: Key) -> None:
        copies = {name: (await self._reach(name)).find(wl.COLLECTION, key) for name in self._reached()}
        one = self._hub.find(wl.COLLECTION, key)
        if one is None:
            return
        if wl.says(one, wl.FINISHED) or not wl.says(one, wl.RESERVED) or wl.goes(one):
            await self._remove_all(copies, key, one)
        elif (done := _first(copies, wl.FINISHED)) is not None:
            await self._sync(done, one)
            self._write(one, _finished(one, copies[done] or {}, self._stamp()))
        elif (evicted := _first(copies, wl.EVICTED)) is not None and wl.says(one, wl.EVICTED):
            await self._sync(evicted, one)
        elif evicted is not None and wl.check_of(one) == wl.READY:
            self._retry(one, f'Workload evicted on worker cluster: "{wl.cluster_of(one)}"')
        else:
            await self._match(key, one, copies)

    async def _match(self, key: Key, one: Tree, copies: dict[str, Tree | None]) -> None:
        """Go by the copies that are as the Workload is; others are of no use."""
        others = [name for name, copy in copies.items() if copy is not None and copy["spec"] != one["spec"]]
        await self._remove_all(others, key, one)
        copies |= dict.fromkeys(others)
        if (admitted := _first(copies, wl.ADMITTED)) is not None:
            await self._converge(key, one, admitted, copies)
        elif wl.check_of(one) == wl.READY:
            self._miss(one)
        elif wl.check_of(one) == wl.PENDING and not wl.cluster_of(one):
            await self._nominate(key, one, copies)

    async def _converge(self, key: Key, one: Tree, admitted: str, copies: Mapping[str, Tree | None]) -> None:
        """Let the worker that admitted a Workload first have it.

        Where that is not the one that the Workload names, as when one is back that was lost, the name stays as it is:
        Kueue takes it for immutable.
        """
        await self._remove_all([name for name in copies if name != admitted and copies[name]], key, one)
        if wl.says(one, wl.EVICTED):
            server = await self._reach(admitted)
            copy = server.find(wl.COLLECTION, key)
            if copy is not None and copy == copies[admitted] and not wl.says(copy, wl.DEACTIVATE):
                told = wl.told(copy, wl.DEACTIVATE, "EvictedOnManagerCluster", "Evicted on manager", self._stamp())
                server.put(WORKLOADS, told, "multikueue")
            return
        await self._sync(admitted, one)
        if wl.check_of(one) == wl.PENDING and wl.cluster_of(one) in {"", admitted}:
            message = f'The workload was admitted on "{admitted}"'
            placed = wl.with_status(one, clusterName=admitted, nominatedClusterNames=None)
            self._write(one, wl.checked(placed, wl.READY, message))

    def _miss(self, one: Tree) -> None:
        """A Workload that a worker had is not to be seen there."""
        if wl.cluster_of(one) in self._reached():
            self._retry(one, "Admitting remote no longer exists")
            return
        left = self.ways[wl.cluster_of(one)].lost + LOST_SECONDS - self._loop.time()
        if left > 0:
            self._again(left)
        else:
            self._retry(one, "Admitting remote lost")

    async def _nominate(self, key: Key, one: Tree, copies: Mapping[str, Tree | None]) -> None:
        """Offer a Workload to all workers that are reached, also one that is evicted and still has its quota."""
        nominated = sorted(copies)
        if (one.get("status") or {}).get("nominatedClusterNames") != nominated:
            self._write(one, wl.with_status(one, nominatedClusterNames=nominated))
        for name, copy in copies.items():
            server = await self._reach(name)
            if copy is None and server.find(wl.COLLECTION, key) is None:
                server.put(WORKLOADS, wl.copied(one), "multikueue")

    def _retry(self, one: Tree, message: str) -> None:
        self._write(one, wl.checked(one, wl.RETRY, message))

    def _write(self, one: Tree, after: Tree) -> None:
        """Change a Workload of the hub, unless it is no longer as it was read: then that is news anyway."""
        now = self._hub.find(wl.COLLECTION, key_of(one))
        if now is not None and now["metadata"]["resourceVersion"] == one["metadata"]["resourceVersion"]:
            self._hub.put(WORKLOADS, after, "multikueue")

    def _stamp(self) -> str:
        return self._hub.storage._stamp()

    # -- TrainJobs

    async def _sync(self, worker: str, one: Tree) -> None:
        """Make the copy of a TrainJob, or copy back what its status says."""
        server, key = await self._reach(worker), Key(one["metadata"]["namespace"], _job_of(one))
        job, copy = self._hub.find(TRAINJOBS, key), server.find(TRAINJOBS, key)
        if job is None or job["metadata"]["uid"] != one["metadata"]["labels"][names.LABEL_JOB_UID]:
            return
        if copy is None:
            body = _copied(job, one["metadata"]["name"])
            with contextlib.suppress(AlreadyExistsError):
                await ask(server, "multikueue", "create", TRAINJOBS, key, body=body)
            return
        if wl.prebuilt(copy) != one["metadata"]["name"]:
            raise LostError  # of an earlier TrainJob of this name: it goes first
        brought = {name: value for name in KNOWN if (value := (copy.get("status") or {}).get(name)) is not None}
        status = {key: value for key, value in (job.get("status") or {}).items() if key not in KNOWN} | brought
        if status != (job.get("status") or {}):
            self._hub.put(TRAIN_JOBS, {**job, "status": status}, "multikueue")

    async def _remove_all(self, workers: Iterable[str], key: Key, one: Tree) -> None:
        for name in workers:
            await self._remove(name, key, _job_of(one))

    async def _remove(self, worker: str, key: Key, name: str) -> None:
        """Delete the copies of a TrainJob and of its Workload."""
        server, job = await self._reach(worker), Key(key.namespace, name)
        found = server.find(TRAINJOBS, job)
        if found is not None and wl.prebuilt(found) == key.name:
            with contextlib.suppress(NotFoundError):
                await ask(server, "multikueue", "delete", TRAINJOBS, job)
        if server.find(wl.COLLECTION, key) is not None:
            server.storage.writer = "multikueue"
            server.storage.delete(wl.COLLECTION, key)


def _first(copies: Mapping[str, Tree | None], kind: str) -> str | None:
    """Return the worker whose copy has said something for the longest."""
    saying = {
        name: str((condition(copy, kind) or {})["lastTransitionTime"])
        for name, copy in copies.items()
        if copy is not None and wl.says(copy, kind)
    }
    return min(saying, key=lambda name: saying[name], default=None)


def _finished(one: Tree, copy: Tree, now: str) -> Tree:
    told = condition(copy, wl.FINISHED) or {"reason": "", "message": ""}
    return wl.told(wl.with_status(one, admission=None), wl.FINISHED, told["reason"], told["message"], now)


def _job_of(one: Tree) -> str:
    return str(one["metadata"]["ownerReferences"][0]["name"])


def _copied(job: Tree, workload: str) -> Tree:
    """Return the copy of a TrainJob as a worker's Kueue lets it in: suspended, with an entry of its own."""
    meta, spec = job["metadata"], job["spec"]
    others = [one for one in spec.get("runtimePatches") or () if one["manager"] != MANAGER]
    entry = {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": {}}}}
    managed = {"managedBy": names.MANAGED_BY_TRAINER, "suspend": True, "runtimePatches": [*others, entry]}
    return {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "labels": {**meta["labels"], names.LABEL_MULTIKUEUE_ORIGIN: wl.ORIGIN},
            "annotations": {**(meta.get("annotations") or {}), names.PREBUILT_WORKLOAD: workload},
        },
        "spec": {**spec, **managed},
    }
