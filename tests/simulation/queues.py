"""Kueue with a thousand queues and MultiKueue with twenty workers, cut down to what an operator sees of them.

`kueue` models how one queue admits, evicts and is refused; this one models many of them, each step of which costs the
same however many there are. A queue has a quota of TrainJobs and admits in the order of creation, by the same two
updates: its patch entry, then `suspend`. A TrainJob that MultiKueue manages goes to a worker, whose status is copied
to it; when the worker is lost, it is suspended, loses its entry and waits in its queue again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.simulation.apiserver import TRAINJOBS
from tests.simulation.people import QUEUE_LABEL, ask
from trainplane.api.names import MANAGED_BY_MULTIKUEUE
from trainplane.kube.errors import ApiError, ConflictError, NotFoundError
from trainplane.resources import TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable
    from random import Random
    from typing import Any

    from tests.simulation.apiserver import ApiServer
    from trainplane.kube.resource import Key
    from trainplane.kube.testing.storage import Change, Tree

MANAGER = "kueue.x-k8s.io/manager"
QUOTA = 2
"""TrainJobs of a queue that run at once."""

RUN_SECONDS = (5.0, 20.0)
"""How long a TrainJob runs on a worker."""


@dataclass
class Queue:
    """One LocalQueue, with the TrainJobs that wait and those that have its quota."""

    is_open: bool = True
    waiting: deque[Key] = field(default_factory=deque)
    running: set[Key] = field(default_factory=set)


class Queues:
    """All queues, by namespace; a TrainJob's worker is drawn."""

    def __init__(self, server: ApiServer, random: Random, workers: Iterable[str] = ()) -> None:
        self._server = server
        self._random = random
        self._queues: dict[str, Queue] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.workers: dict[str, set[Key]] = {name: set() for name in workers}
        """The TrainJobs of each worker that is not lost."""
        self.finished = 0
        server.storage.listeners.append(self._changed)

    def of(self, namespace: str) -> Queue:
        """Return the queue of a namespace."""
        return self._queues.setdefault(namespace, Queue())

    def open(self, namespace: str) -> None:
        """Give a queue its quota."""
        self.of(namespace).is_open = True
        self._admit(namespace)

    def lose(self, worker: str) -> int:
        """Take a worker away, its TrainJobs back into their queues; returns how many there were."""
        lost = self.workers.pop(worker)
        for key in sorted(lost):
            self._spawn(self._evict(key))
        return len(lost)

    def find(self, worker: str) -> None:
        """Let a worker be there."""
        self.workers[worker] = set()

    def _changed(self, change: Change, _: str) -> None:
        if change.collection != TRAINJOBS or change.after is None:
            return
        key, job = change.key, change.after
        if change.before is None:
            if QUEUE_LABEL in (job["metadata"].get("labels") or {}):
                self.of(key.namespace).waiting.append(key)
                self._admit(key.namespace)
        elif is_finished(job) and not is_finished(change.before):
            self.finished += 1
            self.of(key.namespace).running.discard(key)
            for there in self.workers.values():
                there.discard(key)
            self._admit(key.namespace)

    def _admit(self, namespace: str) -> None:
        queue = self.of(namespace)
        while queue.is_open and queue.waiting and len(queue.running) < QUOTA:
            key = queue.waiting.popleft()
            queue.running.add(key)
            self._spawn(self._start(key))

    async def _start(self, key: Key) -> None:
        await asyncio.sleep(self._random.uniform(0.02, 0.6))
        await self._update(key, runtimePatches=[_placed(self._random.choice(("spot", "reserved")))])
        await self._update(key, suspend=False)
        job = self._server.find(TRAINJOBS, key)
        if job is not None and job["spec"].get("managedBy") == MANAGED_BY_MULTIKUEUE:
            worker = self._random.choice(sorted(self.workers))
            self.workers[worker].add(key)
            await self._run(key, worker)

    async def _run(self, key: Key, worker: str) -> None:
        """Copy what a worker says of a TrainJob: its pods are there, are ready, it is complete."""
        for wait, counts in ((1.0, {"active": 1}), (1.0, {"active": 1, "ready": 1})):
            await asyncio.sleep(self._random.uniform(0.1, wait))
            self._copy(key, worker, counts)
        await asyncio.sleep(self._random.uniform(*RUN_SECONDS))
        self._copy(key, worker, {"succeeded": 1}, done=True)

    def _copy(self, key: Key, worker: str, counts: dict[str, int], *, done: bool = False) -> None:
        job = self._server.find(TRAINJOBS, key)
        if job is None or key not in self.workers.get(worker, ()):
            return  # another worker has it by now, or none
        zeros = dict.fromkeys(("active", "ready", "succeeded", "failed", "suspended"), 0)
        status: Tree = {**(job.get("status") or {}), "jobsStatus": [{"name": "node", **zeros, **counts}]}
        if done:
            now = self._server.storage._stamp()
            end = {"type": "Complete", "status": "True", "reason": "AllJobsCompleted", "lastTransitionTime": now}
            status["conditions"] = [*(status.get("conditions") or ()), {**end, "message": "done"}]
        self._server.put(TRAIN_JOBS, {**job, "status": status}, "kueue")

    async def _evict(self, key: Key) -> None:
        await asyncio.sleep(self._random.uniform(0.02, 0.6))
        await self._update(key, suspend=True)
        await self._update(key, runtimePatches=[_placed("")])
        queue = self.of(key.namespace)
        queue.running.discard(key)
        queue.waiting.append(key)
        self._admit(key.namespace)

    async def _update(self, key: Key, **spec: Any) -> None:
        """Update a TrainJob as it is, again if somebody else wrote meanwhile or nobody could review it."""
        while True:
            job = self._server.find(TRAINJOBS, key)
            if job is None:
                return
            try:
                await ask(
                    self._server, "kueue", "update", TRAINJOBS, key, body={**job, "spec": {**job["spec"], **spec}}
                )
            except NotFoundError:
                return
            except ConflictError:
                await asyncio.sleep(0.05)
            except ApiError:
                await asyncio.sleep(self._random.uniform(1.0, 5.0))
            else:
                return

    def _spawn(self, what: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _placed(flavor: str) -> Tree:
    """Return Kueue's patch entry of a TrainJob that has quota of a flavor; of one that has none, without a place."""
    pods = {"template": {"spec": {"template": {"spec": {"nodeSelector": {"flavor": flavor}}}}}}
    spec = {"replicatedJobs": [{"name": "node", **pods}]} if flavor else {}
    return {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": spec}}}


def is_finished(job: Tree) -> bool:
    """Return whether a TrainJob is over."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(one["type"] in {"Complete", "Failed"} and one["status"] == "True" for one in conditions)
