"""Runs a history of a fleet: a hub with our operator and the hub server, two workers with theirs, on one virtual loop.

    outcome = run(draw(7))
    assert not outcome.violations

The same history is the same outcome, in every process, as with one cluster (`machine`).
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tests.simulation.apiserver import JOBSETS, TRAINJOBS
from tests.simulation.engines import QUICK
from tests.simulation.fleet import offers
from tests.simulation.fleet import workload as wl
from tests.simulation.fleet.asked import ask
from tests.simulation.fleet.breaking import HEALS, delay, hush, severed
from tests.simulation.fleet.cluster import Cluster
from tests.simulation.fleet.history import CLUSTERS, DELAYS, FAULTS, HUB, WORKERS
from tests.simulation.fleet.hubserver import HubServer, unsocketed
from tests.simulation.fleet.judge import FleetJudge
from tests.simulation.fleet.multikueue import MultiKueue
from tests.simulation.judge import PROMPT
from tests.simulation.kueue import FLAVORS
from tests.simulation.machine import LEAST_CALM, NOTICED, SETTLED, Outcome, apart, play
from tests.simulation.people import MULTIKUEUE, NAMESPACE, People
from tests.simulation.settled import end_of
from trainplane.kube.resource import Key
from trainplane.kube.transport import TransportSettings
from trainplane.resources import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from random import Random

    from tests.simulation.fleet.breaking import Links
    from tests.simulation.history import Action, History
    from tests.simulation.judge import Violation
    from tests.simulation.loop import VirtualLoop
    from trainplane.kube.testing.storage import Change, Tree

SAMPLE_SECONDS = 10.0
"""Between two looks at the hub's view."""
ASKED_AFTER = (1.0, 5.0, 20.0)
"""Seconds within which somebody asks why a job waits, from when something about that changed."""
GIVEN_UP = TransportSettings().list_seconds
"""Seconds after which a request that is never answered is given up, at most."""


def run(history: History) -> Outcome:
    """Run a history to its end. Whatever is raised within it is a violation too."""
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:

        def made(loop: VirtualLoop, source: Random) -> Fleet:
            return Fleet(history, loop, source, Path(folder))

        return play(history.seed, made)


def _calm(history: History) -> float:
    """Return when the last that is done, or broken, is over; how long a training lasts is no matter of that."""
    still = [one._replace(how={}) if one.kind in {"create", "recreate"} else one for one in history.actions]
    return history._replace(actions=tuple(still)).calm


class Fleet:
    """A fleet with everybody in it."""

    def __init__(self, history: History, loop: VirtualLoop, source: Random, folder: Path) -> None:
        self.history = history
        self.loop = loop
        self.trace = hashlib.sha256()
        self.changes = 0
        violations: list[Violation] = []
        self.clusters = {
            name: Cluster(name, number, history.replicas, loop, source, violations=violations)
            for number, name in enumerate(CLUSTERS)
        }
        for name, cluster in self.clusters.items():
            cluster.server.storage.listeners.append(self._traced(name))
        self.hub = self.clusters[HUB]
        servers = {name: cluster.server for name, cluster in self.clusters.items()}
        workers = {name: servers[name] for name in WORKERS}
        self.multikueue = MultiKueue(self.hub.server, workers, loop, apart(source))
        self.view = HubServer(servers, HUB, folder, loop, apart(source))
        self.judge = FleetJudge(self.clusters, self.multikueue, self.view, loop, violations)
        kinds = {one.kind for one in history.actions}
        for cluster in self.clusters.values():
            cluster.judge.is_fair = cluster.judge.is_whole = kinds.isdisjoint({*FAULTS, "dark"})
            if kinds.isdisjoint(DELAYS):
                cluster.judge.grace = PROMPT
        self.judge.is_fair = kinds.isdisjoint({*FAULTS, "dark"})
        self.people = People(self.hub.server, self.hub.judge.refused)
        self._chance = apart(source)
        self._unsocketed = unsocketed(apart(source))
        self._tasks: set[asyncio.Task[None]] = set()
        self._wondering = apart(source)
        self._asked: set[str] = set()
        """Jobs of which somebody is about to ask why they wait."""
        for cluster in self.clusters.values():
            cluster.server.storage.listeners.append(self._wonder)

    async def run(self) -> None:
        """Let the history happen."""
        with self._unsocketed:
            for cluster in self.clusters.values():
                cluster.start()
                self._spawn(cluster.queue.run())
            self.view.install()
            self.view.start()
            self._spawn(self.multikueue.run())
            self._spawn(self.multikueue.sweep())
            self._spawn(self._sample())
            for action in self.history.actions:
                self.loop.call_at(action.at + 1.0, self._begin, action)
            await asyncio.sleep(_calm(self.history) + LEAST_CALM)
            self._resume_all()
            for turn in range(int(SETTLED / LEAST_CALM)):
                if self.judge.is_calm():
                    break
                if turn * LEAST_CALM > NOTICED:
                    self.judge.misplaced()
                await asyncio.sleep(LEAST_CALM)
            await asyncio.sleep(LEAST_CALM)
            await self.judge.at_last()
            await self.view.stop()

    def hear(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Take an error that nobody catches for a violation, of the machine or of a task that nobody awaits."""
        error = context.get("exception")
        if error is not None:
            self.judge.broken("the machine runs", f"{context['message']}: {error!r}"[:300])

    async def _sample(self) -> None:
        while True:
            await asyncio.sleep(SAMPLE_SECONDS)
            await self.judge.look()

    def _wonder(self, change: Change, _: str) -> None:
        """Let somebody ask why a job waits, soon after something changed by which that is told."""
        name, one = "", change.after
        if change.collection == wl.COLLECTION and one is not None and not wl.says(one, wl.FINISHED):
            name = change.key.name.split("-")[1]
        elif change.collection == offers.COLLECTION and self._waiting():
            name = self._wondering.choice(self._waiting())
        if name and name not in self._asked:
            self._asked.add(name)
            self._spawn(self._ask(name, self._wondering.choice(ASKED_AFTER) * self._wondering.random()))

    def _waiting(self) -> list[str]:
        jobs = self.hub.server.storage.objects.get(TRAINJOBS, {})
        return sorted(key.name for key, job in jobs.items() if job["spec"].get("suspend") and end_of(job) is None)

    async def _ask(self, name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._asked.discard(name)
        await ask(self.judge, name)

    def _begin(self, action: Action) -> None:
        self._spawn(self._happen(action))

    def _spawn(self, what: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _traced(self, cluster: str) -> Callable[[Change, str], None]:
        def trace(change: Change, writer: str) -> None:
            self.changes += 1
            where = f"{self.loop.time():.6f} {cluster} {writer} {change.collection.plural} {change.key}"
            self.trace.update(where.encode())
            self.trace.update(msgspec.json.encode(change.after))

        return trace

    # -- what happens

    async def _happen(self, action: Action) -> None:
        kind, whom, how = action.kind, action.whom, action.how
        own = getattr(self, f"_{kind}", None)
        if own is not None:
            await own(whom, how)
        else:
            await getattr(self.people, kind)(whom, how)

    async def _suspend(self, name: str, how: Tree) -> None:
        await self._hold(name, how, held=True)

    async def _resume(self, name: str, how: Tree) -> None:
        await self._hold(name, how, held=False)

    async def _hold(self, name: str, how: Tree, *, held: bool) -> None:
        """Hold a TrainJob back as people do: by its Workload where Kueue has it, else by itself."""
        job = self.hub.server.find(TRAINJOBS, Key(NAMESPACE, name))
        if job is not None and job["spec"].get("managedBy") == MULTIKUEUE:
            self._activate(wl.made_for(job)["metadata"]["name"], active=not held)
        else:
            await (self.people.suspend if held else self.people.resume)(name, how)

    def _activate(self, name: str, *, active: bool) -> None:
        one = self.hub.server.find(wl.COLLECTION, Key(NAMESPACE, name))
        if one is not None and one["spec"]["active"] != active:
            self.hub.server.put(WORKLOADS, {**one, "spec": {**one["spec"], "active": active}}, "user")

    def _resume_all(self) -> None:
        """Let everything run that Kueue holds back because somebody said so."""
        for key in sorted(self.hub.server.storage.objects.get(wl.COLLECTION, {})):
            self._activate(key.name, active=True)

    async def _evict(self, name: str, how: Tree) -> None:
        queue = self.clusters[how["worker"]].queue
        if how.get("moves"):
            queue.move_quota()
        queue.evict(name)

    async def _drain(self, worker: str, how: Tree) -> None:
        self.clusters[worker].queue.drain(drained=True)
        await asyncio.sleep(how["seconds"])
        self.clusters[worker].queue.drain(drained=False)

    async def _offer(self, whom: str, how: Tree) -> None:
        self.clusters[whom].spare.offer(**how)

    async def _split(self, worker: str, how: Tree) -> None:
        self.clusters[worker].queue.offer(dict(zip(FLAVORS, how["quota"], strict=True)))

    # -- what breaks of operators

    async def _operator_cut(self, whom: str, how: Tree) -> None:
        with severed(self._operators(whom)):
            await asyncio.sleep(how["seconds"])

    async def _operator_silent(self, whom: str, how: Tree) -> None:
        await hush(self._operators(whom), how["seconds"])

    async def _operator_lag(self, whom: str, how: Tree) -> None:
        await delay(self._operators(whom), how["lag"], how["seconds"])

    async def _operator_kill(self, whom: str, how: Tree) -> None:
        one = self._chance.choice(self.clusters[whom].replicas)
        await one.kill()
        await asyncio.sleep(how["seconds"])
        if one.operator is None:
            one.start()

    async def _reviews_down(self, whom: str, how: Tree) -> None:
        self.clusters[whom].reviews.are_down = True
        await asyncio.sleep(how["seconds"])
        self.clusters[whom].reviews.are_down = False

    def _operators(self, whom: str) -> Links:
        return lambda: [one.link for one in self.clusters[whom].replicas]

    # -- what breaks of workers

    async def _worker_cut(self, whom: str, how: Tree) -> None:
        with self.multikueue.cut(whom):
            await self._view_cut(whom, how)

    async def _worker_flaps(self, whom: str, how: Tree) -> None:
        for _ in range(4):
            await self._worker_cut(whom, {"seconds": self._chance.uniform(0.5, 8.0)})
            await asyncio.sleep(self._chance.uniform(0.5, 15.0))

    async def _worker_restart(self, whom: str, how: Tree) -> None:
        with severed(self._operators(whom)):
            await self._worker_cut(whom, {"seconds": min(how["seconds"], 20.0)})

    async def _slow_collector(self, whom: str, how: Tree) -> None:
        self.clusters[whom].engines.slow_collector = 60.0
        await asyncio.sleep(how["seconds"])
        self.clusters[whom].engines.slow_collector = 5.0

    async def _slow_engines(self, whom: str, how: Tree) -> None:
        self.clusters[whom].engines.quick = 15.0
        await asyncio.sleep(how["seconds"])
        self.clusters[whom].engines.quick = QUICK

    async def _dark(self, whom: str, how: Tree) -> None:
        """Let a worker be seen by nobody from the moment that a JobSet is let run there, and move its training."""
        queue = self.clusters[whom].queue
        if not await self._begins(whom, Key(NAMESPACE, how["name"])):
            return
        with self.multikueue.cut(whom):
            hushed = asyncio.create_task(hush(self._operators(whom), how["seconds"]))
            await asyncio.sleep(2.0)
            queue.move_quota()
            queue.evict(how["name"])
            await hushed
            for link in self._operators(whom)():
                link.cut()

    async def _begins(self, whom: str, key: Key) -> bool:
        """Wait a while for a JobSet to be let run on a cluster; returns whether it was."""
        begun, server = asyncio.Event(), self.clusters[whom].server

        def made(change: Change, _: str) -> None:
            jobset = change.after if (change.collection, change.key) == (JOBSETS, key) else None
            if jobset is not None and not jobset["spec"].get("suspend"):
                begun.set()

        server.storage.listeners.append(made)
        try:
            async with asyncio.timeout(60.0):
                await begun.wait()
        except TimeoutError:
            return False
        finally:
            server.storage.listeners.remove(made)
        return True

    # -- what breaks of the hub server

    def _links(self, whom: str) -> Links:
        return lambda: self.view.ways[whom]

    async def _view_cut(self, whom: str, how: Tree) -> None:
        health = self.judge.health
        with severed(self._links(whom), lambda: health.cut_for(whom) > 0), health.cut(whom):
            await asyncio.sleep(how["seconds"])

    async def _view_silent(self, whom: str, how: Tree) -> None:
        with self.judge.health.deaf(whom, NOTICED + LEAST_CALM):
            await hush(self._links(whom), how["seconds"])

    async def _view_lag(self, whom: str, how: Tree) -> None:
        with self.judge.health.ill(whom):
            await delay(self._links(whom), how["lag"], how["seconds"])

    async def _view_hung(self, whom: str, how: Tree) -> None:
        await self._storm(whom, "hung", how, heals=GIVEN_UP + HEALS)

    async def _view_lost(self, whom: str, how: Tree) -> None:
        await self._storm(whom, "lost", how)

    async def _view_slow(self, whom: str, how: Tree) -> None:
        await self._storm(whom, "slow", how)

    async def _storm(self, whom: str, what: str, how: Tree, heals: float = HEALS) -> None:
        with self.judge.health.ill(whom, heals):
            setattr(self.view.weathers[whom], what, how["share"])
            await asyncio.sleep(how["seconds"])
            setattr(self.view.weathers[whom], what, 0.0)

    async def _view_restart(self, whom: str, how: Tree) -> None:
        if self.view.process is not None:
            await self.view.stop()
            await asyncio.sleep(how["seconds"])
            self.view.start()
            for _ in range(5):  # soon, for it knows little yet
                await asyncio.sleep(self._chance.uniform(0.02, 0.3))
                await self.judge.look()

    async def _rotate(self, whom: str, how: Tree) -> None:
        with self.judge.health.ill(whom):
            self.view.rotate(whom)
