"""Plays a script of a fleet on the models, in virtual time: what `recorder` here does with engines."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from tests.simulation.apiserver import TRAINJOBS, ApiServer, Record
from tests.simulation.engines import Engines
from tests.simulation.fleet import workload as wl
from tests.simulation.fleet.abstract import cluster_state, job_of
from tests.simulation.fleet.cluster import APART
from tests.simulation.fleet.history import CLUSTERS, HUB, WORKERS
from tests.simulation.fleet.multikueue import LOST_SECONDS, SWEEP_SECONDS, MultiKueue
from tests.simulation.fleet.queue import Queue
from tests.simulation.fleet.scripts import OFFERED
from tests.simulation.fleet.verbs import FleetVerbs
from tests.simulation.kueue import of_the_first
from tests.simulation.loop import VirtualClock
from tests.simulation.people import NAMESPACE, train_job
from tests.simulation.replay import Virtual, play
from trainplane.kube.resource import Key
from trainplane.kube.testing.storage import key_of
from trainplane.resources import TRAIN_JOBS, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.simulation.recordings import Observation
    from tests.simulation.scripts import Step
    from trainplane.kube.testing.storage import Tree


REST_SECONDS = 2.5 * SWEEP_SECONDS
"""Virtual seconds within which the models come to rest after a step; the sweep has come by."""


def replay_fleet(steps: Sequence[Step], seed: int) -> list[Observation]:
    """Return the state after each step of a script of a fleet."""
    with Virtual(seed, REST_SECONDS) as virtual:
        return play(virtual, _FleetStage(virtual), steps)


class _FleetStage(FleetVerbs):
    """Kueue on three clusters, garbage collectors, and MultiKueue between them; the script is all operators."""

    def __init__(self, virtual: Virtual) -> None:
        self._loop = virtual.loop
        self._servers: dict[str, ApiServer] = {}
        self._queues: dict[str, Queue] = {}
        for number, name in enumerate(CLUSTERS):
            first = 1 + number * APART
            record = Record(now=VirtualClock(virtual.loop).now, revision=first, compacted=first - 1)
            server = self._servers[name] = ApiServer(record)
            Engines(server, virtual.loop, virtual.random, None)
            self._queues[name] = Queue(server, virtual.random, of_the_first(OFFERED[name]), is_hub=name == HUB)
        workers = {name: self._servers[name] for name in WORKERS}
        self._multikueue = MultiKueue(self._servers[HUB], workers, virtual.loop, virtual.random)
        self._cuts: dict[str, Any] = {}
        acting = [*(one.run() for one in self._queues.values()), self._multikueue.run(), self._multikueue.sweep()]
        self._tasks = [virtual.loop.create_task(one) for one in acting]

    def state(self) -> Tree:
        """Return how everything stands."""
        return {
            name: cluster_state(self._all(name, TRAINJOBS), self._all(name, wl.COLLECTION)) for name in self._servers
        }

    # -- users, and operators

    def create(self, name: str, pods: int) -> None:
        """Create a TrainJob at the hub."""
        told = {"runtime": "torch", "nodes": pods, "seconds": 1, "codes": [0], "dispatched": True}
        self._servers[HUB].put(TRAIN_JOBS, train_job(name, told), "user")

    def drop_job(self, name: str, cluster: str) -> bool:
        """Delete a TrainJob on a cluster."""
        key, server = Key(NAMESPACE, name), self._servers[cluster]
        if server.find(TRAINJOBS, key) is None:
            return False
        server.storage.writer = "user"
        server.storage.delete(TRAINJOBS, key)
        return True

    def _change(self, name: str, cluster: str, part: str, fields: Tree) -> bool:
        found = self._servers[cluster].find(TRAINJOBS, Key(NAMESPACE, name))
        if found is None:
            return False
        self._servers[cluster].put(TRAIN_JOBS, {**found, part: {**found.get(part, {}), **fields}}, "user")
        return True

    def _stamp(self) -> str:
        return self._servers[HUB].storage._stamp()

    # -- administrators

    def _activate(self, name: str, *, active: bool) -> None:
        for one in self._all(HUB, wl.COLLECTION):
            if job_of(one) == name:
                self._servers[HUB].put(WORKLOADS, {**one, "spec": {**one["spec"], "active": active}}, "user")

    def offer(self, cluster: str, pods: int) -> None:
        """Give a cluster's queue so much quota."""
        self._queues[cluster].offer(of_the_first(pods))

    def drain(self, cluster: str) -> None:
        """Let a cluster's queue evict all."""
        self._queues[cluster].drain(drained=True)

    def fill(self, cluster: str) -> None:
        """Let it admit again."""
        self._queues[cluster].drain(drained=False)

    def drop_workload(self, name: str, cluster: str) -> None:
        """Delete the Workload of a TrainJob on a cluster."""
        for one in self._all(cluster, wl.COLLECTION):
            if job_of(one) == name:
                self._queues[cluster].delete(key_of(one))

    # -- the way to a worker

    def cut(self, worker: str) -> None:
        """Let MultiKueue not reach a worker."""
        self._cuts[worker] = contextlib.ExitStack()
        self._cuts[worker].enter_context(self._multikueue.cut(worker))

    def mend(self, worker: str) -> None:
        """Let MultiKueue reach it again."""
        self._cuts.pop(worker).close()

    def lose(self) -> None:
        """Let so much time pass that a worker that is cut off is lost."""
        self._loop.run_until_complete(asyncio.sleep(LOST_SECONDS))

    def _all(self, cluster: str, collection: Any) -> list[Tree]:
        return list(self._servers[cluster].storage.objects.get(collection, {}).values())
