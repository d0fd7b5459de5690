"""Many TrainJobs in one simulated cluster, and what they cost: a thousand queues, twenty workers, three replicas.

    PYTHONPATH=.:src python -m tests.simulation.scale 1000 10000 100000

Everything is made anew for each size, and lives through the same:

    fill     two TrainJobs run, one to its end and one to its place in a queue without quota; all replicas are killed,
             and the two are copied with all that they own until there are enough: one in five waits
    storm    all replicas start at once
    work     more come at a steady rate, each into the queue of its namespace, is admitted, runs and ends
    lost     more come, and the replica that leads is killed

With `flaps` there are no copies: all TrainJobs are dispatched to workers by MultiKueue, and one worker is lost and
found so many times.

CPU is the operator's own, with its transport and without HTTP, TLS and the garbage collector; requests, events and
reconciles are counted, and so the same on every machine.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import gc
import logging
import resource
import sys
from collections import Counter, deque
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from tests.simulation import entropy
from tests.simulation.apiserver import TRAINJOBS, Record
from tests.simulation.copies import fill
from tests.simulation.counted import CountingLink, CountingServer, Phase, Reading, writes
from tests.simulation.engines import Engines
from tests.simulation.loop import VirtualClock
from tests.simulation.machine import close
from tests.simulation.meter import Meter, MeteredLoop, owned_by
from tests.simulation.people import QUEUE_LABEL, ask, install_runtimes, train_job
from tests.simulation.queues import Queues
from tests.simulation.replica import SETTINGS, Replica
from tests.simulation.weight import weight
from tests.simulation.wire import Weather
from trainplane.api.configuration import LeaderElection
from trainplane.api.names import MANAGED_BY_MULTIKUEUE
from trainplane.kube.errors import InternalServerError
from trainplane.kube.resource import Key
from trainplane.operator.main import TRAIN_JOB_CONTROLLER

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from trainplane.kube.admission import AdmissionRequest
    from trainplane.kube.testing.storage import Tree

NAMESPACES = 1000
"""Each with a queue of its own."""
WORKERS = tuple(f"worker-{number:02d}" for number in range(20))
REPLICAS = ("r0", "r1", "r2")
RATE = 50.0
"""New TrainJobs a second: less than an API server on two cores takes."""
CLOSED = 5
"""Every so many-th queue has no quota."""
LOST = 100
"""TrainJobs that come while the leader is lost, at most."""
PROBED = 4
"""With every so many-th TrainJob the speed of the machine is measured."""
KEPT_SECONDS = 90.0
"""How much history the server keeps, as etcd compacts; every watch gets a bookmark each minute."""

SHIPPED = dataclasses.replace(
    SETTINGS, configuration=msgspec.structs.replace(SETTINGS.configuration, leader_election=LeaderElection())
)
"""With the Lease as it is shipped: what a lost replica costs hangs on it."""


class Cluster:
    """A cluster with its people and replicas, on a loop that measures."""

    def __init__(self, loop: MeteredLoop, meter: Meter, source: Random, *, dispatched: bool) -> None:
        self._loop = loop
        self._meter = meter
        self._random = _apart(source)
        self._dispatched = dispatched
        self.server = CountingServer(Record(now=VirtualClock(loop).now), meter)
        self.server.reviewer = self._review
        self.queues = Queues(self.server, _apart(source), WORKERS)
        self._engines = Engines(self.server, loop, _apart(source), self._fate)
        self.links = [CountingLink(self.server, name, _apart(source), Weather()) for name in REPLICAS]
        self.replicas = [Replica(link, loop, _apart(source), SHIPPED) for link in self.links]
        self._ending = 0
        """How many of those that came will end."""
        self._made = 0
        """TrainJobs that came, or were copied."""
        self._reconciled = 0
        """Reconciles of processes that are no more."""
        self._tasks: set[asyncio.Task[Any]] = set()

    def read(self) -> Reading:
        """Return all counters as they are."""
        return Reading(
            self._loop.time(),
            self._meter.reading(),
            sum((one.requests for one in self.links), Counter()),
            self.server.events,
            self.server.event_bytes,
            self._reconciled + sum(map(_reconciles, self.replicas)),
            self.server.storage.revision,
            self._meter.probes,
        )

    # -- what happens

    async def start(self) -> None:
        """Install runtimes, start all replicas, and wait until one leads and all are ready."""
        install_runtimes(self.server)
        for number in range(0, NAMESPACES, CLOSED):
            self.queues.of(_namespace(number)).is_open = self._dispatched
        self._spawn(self._forget())
        for one in self.replicas:
            self._start(one)
        await self._until(self._is_level)

    async def fill(self, jobs: int) -> None:
        """Kill all replicas and put so many TrainJobs there: two that lived, and copies of them."""
        await self.work(2)
        for one in self.replicas:
            await self._kill(one)
        fill(self.server.storage, self._homes(jobs - 2))

    def _homes(self, jobs: int) -> Iterator[tuple[int, str, bool]]:
        """Yield numbers and namespaces of the TrainJobs to come, and whether they wait there."""
        for number in range(self._made, self._made + jobs):
            yield number, _namespace(number), number % CLOSED == 0
        self._made += jobs

    async def work(self, jobs: int) -> Phase:
        """Let TrainJobs come until all have ended that can."""
        before = self.read()
        await self._come(jobs)
        return Phase("work", jobs, before, self.read())

    async def _come(self, jobs: int) -> None:
        for number, namespace, waits in self._homes(jobs):
            self._ending += self._dispatched or not waits
            self._spawn(self._create(number, namespace))
            if number % PROBED == 0:
                self._meter.probe()
            await asyncio.sleep(1 / RATE)
        await self._until(lambda: self.is_over and self._is_level())

    @property
    def is_over(self) -> bool:
        """Whether all TrainJobs have ended that came to a queue with quota."""
        return self.queues.finished == self._ending

    async def storm(self) -> Phase:
        """Start all replicas at once, which know nothing."""
        before = self.read()
        for one in self.replicas:
            self._start(one)
        await self._until(self._is_level)
        return Phase("storm", self._made, before, self.read())

    async def lose_the_leader(self, jobs: int) -> tuple[Phase, float]:
        """Let TrainJobs come and kill who leads; returns for how long nobody wrote, too."""
        before = self.read()
        coming = self._spawn(self._come(jobs))
        await asyncio.sleep(1.0)
        leader = self.leader()
        await self._kill(leader)
        killed_at, written = self._loop.time(), self._writes()
        await self._until(lambda: self._writes() > written, every=0.25)
        silent = self._loop.time() - killed_at
        self._start(leader)
        await coming
        return Phase("lost", jobs, before, self.read()), silent

    async def flap(self, jobs: int, times: int) -> tuple[Phase, int]:
        """Let TrainJobs come to workers, one of which is lost and found; returns how many it had when it was lost."""
        evicted, pause = 0, jobs / RATE / (2 * times + 1)
        work = self._spawn(self.work(jobs))
        for _ in range(times):
            await asyncio.sleep(pause)
            evicted += self.queues.lose(WORKERS[0])
            await asyncio.sleep(pause)
            self.queues.find(WORKERS[0])
        return (await work)._replace(name="flap"), evicted

    def leader(self) -> Replica:
        """Return the one replica that leads."""
        (leader,) = (one for one in self.replicas if one.leads())
        return leader

    def _start(self, one: Replica) -> None:
        owned_by(one.name).run(one.start)

    async def _kill(self, one: Replica) -> None:
        self._reconciled += _reconciles(one)
        await one.kill()

    async def _create(self, number: int, namespace: str) -> None:
        told = {"runtime": "torch", "nodes": 1, "seconds": 5, "codes": [0], "queue": True}
        job = train_job(f"job-{number:06d}", told)
        job["metadata"] |= {"namespace": namespace, "labels": {QUEUE_LABEL: "queue"}}
        if self._dispatched:
            job["spec"]["managedBy"] = MANAGED_BY_MULTIKUEUE
        key = Key(namespace, job["metadata"]["name"])
        await ask(self.server, "user", "create", TRAINJOBS, key, body=job)

    async def _forget(self) -> None:
        """Forget history as it grows old; and collect garbage here, where it is the models' cost."""
        marks: deque[int] = deque(maxlen=9)
        while True:
            await asyncio.sleep(KEPT_SECONDS / 9)
            if len(marks) == marks.maxlen:
                self.server.forget(marks[0])
            marks.append(self.server.storage.revision)
            gc.collect(1)
            gc.freeze()

    async def _until(self, holds: Callable[[], bool], every: float = 1.0) -> None:
        while not holds():  # noqa: ASYNC110 time is virtual: looking costs nothing but a look
            await asyncio.sleep(every)

    def _is_level(self) -> bool:
        """Return whether all mirrors are in sync, and somebody leads who has nothing to do, now or later."""
        queues = []
        for one in self.replicas:
            if one.operator is None or not one.operator.manager.ready.is_set():
                return False
            if one.leads():
                queues.append(one.operator.train_jobs.queue)
        return len(queues) == 1 and not (queues[0].pending or queues[0].delayed)

    def _writes(self) -> float:
        return sum(writes(one.requests) for one in self.links)

    # -- what the cluster asks

    async def _review(self, path: str, request: AdmissionRequest) -> Any:
        """Ask a replica that is ready, in a task of its own, whose cost is that of its reviews."""
        asked = [one for one in self.replicas if one.operator is not None and one.operator.manager.ready.is_set()]
        if not asked:
            raise InternalServerError("failed calling webhook: no endpoints available", code=500)
        one = self._random.choice(asked)
        return await self._loop.create_task(one.review(path, request), context=owned_by(f"{one.name}-reviews"))

    def _fate(self, pod: Tree) -> tuple[float, int]:
        return self._random.uniform(5, 7), 0

    def _spawn(self, what: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = self._loop.create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _namespace(number: int) -> str:
    return f"team-{number % NAMESPACES}"


def _apart(source: Random) -> Random:
    return Random(source.getrandbits(64))


def _reconciles(one: Replica) -> int:
    """Return how many reconciles of TrainJobs a replica's process has counted."""
    if one.operator is None:
        return 0
    samples = (sample for family in one.operator.metrics.registry.collect() for sample in family.samples)
    return sum(
        int(sample.value)
        for sample in samples
        if sample.name == "controller_runtime_reconcile_total" and sample.labels["controller"] == TRAIN_JOB_CONTROLLER
    )


async def _phases(cluster: Cluster, jobs: int, lived: int) -> dict[str, Any]:
    await cluster.start()
    await cluster.fill(jobs - lived)
    storm = await cluster.storm()
    work = await cluster.work(lived)
    operator = cluster.leader().operator
    assert operator is not None
    held = weight(operator)
    lost, silent = await cluster.lose_the_leader(min(LOST, lived))
    return {
        "jobs": jobs,
        "is_over": cluster.is_over,
        "cpu_ms_per_job": work.operator_cpu,
        "probes_per_job": work.probes,
        "held_bytes_per_job": held / jobs,
        "silent_seconds": silent,
        "requests": work.requests,
        "rows": [one.row() for one in (storm, work, lost)],
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


async def _flaps(cluster: Cluster, jobs: int, flaps: int) -> dict[str, Any]:
    await cluster.start()
    phase, evicted = await cluster.flap(jobs, flaps)
    return {
        "jobs": jobs,
        "is_over": cluster.is_over,
        "evicted": evicted,
        "requests": phase.requests,
        "rows": [phase.row()],
    }


def run(jobs: int, lived: int, *, seed: int = 1, flaps: int | None = None) -> dict[str, Any]:
    """Run all phases with so many TrainJobs, of which `lived` come when the others are there; returns what it cost.

    With `flaps`, dispatch `lived` to workers of which one flaps.
    """
    meter = Meter()
    with entropy.drawn_from(seed) as source:
        loop = MeteredLoop(Random(source.getrandbits(64)), meter)
        quiet = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        gc.collect()
        gc.disable()
        try:
            asyncio.set_event_loop(loop)
            cluster = Cluster(loop, meter, source, dispatched=flaps is not None)
            running = _phases(cluster, jobs, lived) if flaps is None else _flaps(cluster, lived, flaps)
            return loop.run_until_complete(running)
        finally:
            gc.unfreeze()
            gc.enable()
            logging.disable(quiet)
            close(loop)
            asyncio.set_event_loop(None)


def main() -> None:
    """Run the sizes that are asked for, after one that is not shown, and print what each cost."""
    asked = argparse.ArgumentParser(description="What TrainJobs cost in a simulated cluster of many.")
    asked.add_argument("sizes", type=int, nargs="+")
    asked.add_argument("--lived", type=int, default=500, help="TrainJobs that come when the others are there")
    asked.add_argument("--flaps", type=int, help="dispatch them to workers, of which one is lost so many times")
    told = asked.parse_args()
    run(100, 50)
    for size in told.sizes:
        outcome = run(size, min(size // 2, told.lived), flaps=told.flaps)
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(outcome), indent=1).decode() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
