"""Runs a history: the replicas, the cluster and everybody in it, on one virtual loop, and says what was broken.

    outcome = run(draw(7))
    assert not outcome.violations

The same history is the same outcome, in every process: `digest` is of each change that was stored, in its order.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from dataclasses import dataclass, fields, replace
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from tests.simulation import entropy, garbage
from tests.simulation.apiserver import ApiServer, Record
from tests.simulation.attempts import Attempts
from tests.simulation.disasters import Disasters
from tests.simulation.disruptions import Disruptions
from tests.simulation.engines import QUICK, Engines
from tests.simulation.history import DELAYS, FAULTS, REPLICAS
from tests.simulation.judge import PROMPT, Judge, Violation
from tests.simulation.kubelet import Kubelet
from tests.simulation.kueue import Kueue
from tests.simulation.loop import VirtualClock, VirtualLoop
from tests.simulation.people import People, install_runtimes
from tests.simulation.rare import DISASTERS
from tests.simulation.replica import Replica
from tests.simulation.reviewing import Fates, Reviews
from tests.simulation.settled import misplaced
from tests.simulation.unscraped import Unscraped
from tests.simulation.wire import Link, Weather

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from tests.simulation.history import Action, History
    from trainplane.kube.testing.storage import Change, Tree

LEAST_CALM = 60.0
"""Virtual seconds between two looks whether all is as it should, once nothing breaks any more."""

SETTLED = 1500.0
"""Virtual seconds after the last fault within which it must be: a silent watch is noticed within 300, and a job that
waits for others in its queue may run last."""

NOTICED = 300.0
"""Virtual seconds within which a watch that fell silent is noticed, and all that it did not bring is made good."""

WEATHERS = frozenset(one.name for one in fields(Weather))


@dataclass(frozen=True)
class Outcome:
    """How a history went."""

    violations: tuple[Violation, ...]
    digest: str
    steps: int
    changes: int


def run(history: History) -> Outcome:
    """Run a history to its end. Whatever is raised within it is a violation too."""
    return play(history.seed, lambda loop, source: World(history, loop, source))


class Court(Protocol):
    """Notes what was broken."""

    violations: list[Violation]

    def broken(self, rule: str, what: str) -> None:
        """Note a violation."""


class Played(Protocol):
    """A world that a history happens to."""

    trace: Any
    changes: int

    @property
    def judge(self) -> Court:
        """Who says what was broken."""

    async def run(self) -> None:
        """Let the history happen."""

    def hear(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Take an error that nobody catches."""


def play(seed: int, made: Callable[[VirtualLoop, Random], Played]) -> Outcome:
    """Run a world that is made on a virtual loop, with all chance from a seed."""
    with entropy.drawn_from(seed) as source, garbage.kept():
        loop = VirtualLoop(Random(source.getrandbits(64)))
        quiet = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        unheard: list[Violation] = []
        try:
            asyncio.set_event_loop(loop)
            outcome = _happened(made(loop, source), loop)
            loop.set_exception_handler(lambda _, context: unheard.extend(_said(context, loop.time())))
        finally:
            logging.disable(quiet)
            close(loop)
            asyncio.set_event_loop(None)
        garbage.collect()
        return replace(outcome, violations=(*outcome.violations, *unheard))


def _happened(world: Played, loop: VirtualLoop) -> Outcome:
    """Let a world's history happen."""
    loop.set_exception_handler(world.hear)
    try:
        loop.run_until_complete(world.run())
    except Exception as error:  # noqa: BLE001 what ends a history early is what it found
        world.judge.broken("the machine runs", repr(error)[:300])
    return Outcome(tuple(world.judge.violations), world.trace.hexdigest(), loop.steps, world.changes)


def close(loop: VirtualLoop) -> None:
    """End whatever still runs on a loop, and close it."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


class World:
    """A cluster with everybody in it."""

    def __init__(self, history: History, loop: VirtualLoop, source: Random) -> None:
        self.history = history
        self.loop = loop
        clock = VirtualClock(loop)
        self.server = ApiServer(Record(now=clock.now))
        self.trace = hashlib.sha256()
        self.changes = 0
        self.server.storage.listeners.append(self._trace)
        self.weather = Weather()
        self.replicas = [
            Replica(Link(self.server, name, apart(source), self.weather), loop, apart(source), figures=Unscraped)
            for name in REPLICAS[: history.replicas]
        ]
        self.kueue = Kueue(self.server, apart(source))
        acting, chance = apart(source), apart(source)
        fates, reacting = Fates(self.server, chance), Random(f"pods {history.seed}")
        kubelet = Kubelet(self.server, loop, apart(reacting), Fates(self.server, apart(reacting)).of)
        self.engines = Engines(self.server, loop, acting, fates.of, kubelet)
        self.disruptions = Disruptions(self.server, self.engines, apart(reacting))
        self.judge = Judge(self.server, loop, self.kueue, self.replicas)
        self.judge.attempts = Attempts(loop, kubelet)
        kinds = {one.kind for one in history.actions}
        broken = kinds & {*FAULTS, *DISASTERS}
        self.judge.is_fair = not broken
        self.judge.clocks_apart = history.clocks_apart if broken <= {"skew", "jump"} else None
        self.judge.is_whole = broken <= {"unanswered", "lost"}
        if kinds.isdisjoint(DELAYS):
            self.judge.grace = PROMPT
        self.people = People(self.server, self.judge.refused)
        self.disasters = Disasters(self)
        self.reviews = Reviews(self.replicas, chance)
        self._tasks: set[asyncio.Task[None]] = set()
        self.server.reviewer = self.reviews.ask
        for one in self.replicas:
            one.link.sent.append(self.judge.sent)

    async def run(self) -> None:
        """Let the history happen."""
        install_runtimes(self.server, self.history.runtimes)
        for one in self.replicas:
            one.start()
        self._spawn(self.kueue.run())
        for action in self.history.actions:
            self.disasters.foresee(action)
            self.loop.call_at(action.at + 1.0, self._begin, action)
        await asyncio.sleep(self.history.calm + LEAST_CALM)
        for turn in range(int(SETTLED / LEAST_CALM)):
            if self.judge.is_calm():
                break
            if turn * LEAST_CALM > NOTICED:
                for what in misplaced(self.judge):
                    self.judge.broken("quota equals pods", what)
            await asyncio.sleep(LEAST_CALM)
        await asyncio.sleep(LEAST_CALM)
        self.judge.at_last()

    def hear(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Take an error that nobody catches for a violation, of the machine or of a task that nobody awaits."""
        self.judge.violations.extend(_said(context, self.loop.time()))

    def _begin(self, action: Action) -> None:
        self._spawn(self._happen(action))

    def _spawn(self, what: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _happen(self, action: Action) -> None:
        kind, how = action.kind, action.how
        if kind == "evict":
            if how.get("moves"):
                self.kueue.move_quota()
            self.kueue.evict(action.whom)
        elif hasattr(self.disruptions, kind):
            await getattr(self.disruptions, kind)(action.whom, how)
        elif hasattr(self.people, kind):
            await getattr(self.people, kind)(action.whom, how)
        elif kind == "cut":
            await self.cut(list(self._whom(action)), how)
        elif kind in WEATHERS:
            setattr(self.weather, kind, how["share"])
            await asyncio.sleep(how["seconds"])
            setattr(self.weather, kind, 0.0)
        elif hasattr(self.disasters, kind):
            await getattr(self.disasters, kind)(list(self._whom(action)), how)
        else:
            await getattr(self, f"_{kind}")(list(self._whom(action)), how)

    def _whom(self, action: Action) -> Iterator[Replica]:
        for one in self.replicas:
            if action.whom in {one.name, "all"}:
                yield one

    # -- faults

    async def cut(self, whom: list[Replica], how: Tree) -> None:
        for one in whom:
            one.link.is_cut = True
            one.link.cut()
        await asyncio.sleep(how["seconds"])
        for one in whom:
            one.link.is_cut = False

    async def _silent(self, whom: list[Replica], how: Tree) -> None:
        for one in whom:
            one.link.is_silent = True
            for stream in one.link.streams:
                stream.silence()
        await asyncio.sleep(how["seconds"])
        for one in whom:
            one.link.is_silent = False

    async def _cut_streams(self, whom: list[Replica], how: Tree) -> None:
        for one in whom:
            one.link.cut()

    async def _end_streams(self, whom: list[Replica], how: Tree) -> None:
        for one in whom:
            for stream in list(one.link.streams):
                stream.end()

    async def _lag(self, whom: list[Replica], how: Tree) -> None:
        for one in whom:
            one.link.lag = how["lag"]
        await asyncio.sleep(how["seconds"])
        for one in whom:
            one.link.lag = 0.0

    async def _kill(self, whom: list[Replica], how: Tree) -> None:
        for one in whom:
            await one.kill()
        await asyncio.sleep(how["seconds"])
        for one in whom:
            if one.operator is None:
                one.start()

    async def _stop(self, whom: list[Replica], how: Tree) -> None:
        for one in whom:
            await one.stop()
        await asyncio.sleep(how["seconds"])
        for one in whom:
            if one.operator is None:
                one.start()

    async def _compact(self, whom: list[Replica], how: Tree) -> None:
        self.server.storage.compact()

    async def _reviews_down(self, whom: list[Replica], how: Tree) -> None:
        self.reviews.are_down = True
        await asyncio.sleep(how["seconds"])
        self.reviews.are_down = False

    async def _skew(self, whom: list[Replica], how: Tree) -> None:
        for one in whom:
            one.clock.skew = how["skew"]

    async def _slow_collector(self, whom: list[Replica], how: Tree) -> None:
        self.engines.slow_collector = 60.0
        await asyncio.sleep(how["seconds"])
        self.engines.slow_collector = 5.0

    async def _slow_engines(self, whom: list[Replica], how: Tree) -> None:
        self.engines.quick = 15.0
        await asyncio.sleep(how["seconds"])
        self.engines.quick = QUICK

    async def _lease_cut(self, whom: list[Replica], how: Tree) -> None:
        for one in whom:
            one.link.leases_are_cut = True
        await asyncio.sleep(how["seconds"])
        for one in whom:
            one.link.leases_are_cut = False

    async def _api_restart(self, whom: list[Replica], how: Tree) -> None:
        await self.cut(self.replicas, {"seconds": min(how["seconds"], 20.0)})

    def _trace(self, change: Change, writer: str) -> None:
        self.changes += 1
        self.trace.update(f"{self.loop.time():.6f} {writer} {change.collection.plural} {change.key}".encode())
        self.trace.update(msgspec.json.encode(change.after))


def _said(context: dict[str, Any], at: float) -> Iterator[Violation]:
    """Yield what an event loop says of an error that nobody catches; nothing if it speaks of something else."""
    error = context.get("exception")
    if error is not None:
        yield Violation("the machine runs", round(at, 3), f"{context['message']}: {error!r}"[:300])


def apart(source: Random) -> Random:
    """Return a source of chance of its own, drawn from another."""
    return Random(source.getrandbits(64))
