"""What the steps of a TrainJob print, merged in the order of time.

To follow is to watch the TrainJob and its pods, and to read each pod whose step is asked for as soon as there is one:
pods that are not there yet, that replace others, that come back after a suspend. It ends when the TrainJob is over and
all of them are read. Logs of a dispatched job are read from its hub.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import sys
from collections import deque
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.client.backends.kubernetes.failures import translate
from trainplane.client.backends.kubernetes.hublog import RankLog
from trainplane.client.backends.kubernetes.merging import Merger, MergeSettings
from trainplane.client.backends.kubernetes.mirror import Mirror, pods_of
from trainplane.client.backends.kubernetes.podlog import PodLog
from trainplane.client.errors import NotFoundError
from trainplane.explain.places import NODE, has_launcher, is_training, name_places, number_places
from trainplane.explain.pods import created, index_of
from trainplane.explain.standing import is_dispatched
from trainplane.kube.errors import KubeError
from trainplane.lifecycle.conditions import conditions_of, is_finished
from trainplane.resources import PODS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from trainplane.api.podindex import PodIndex
    from trainplane.api.tree import Tree
    from trainplane.client.backends.kubernetes.hub import Hub
    from trainplane.client.backends.kubernetes.merging import LogStream
    from trainplane.client.backends.kubernetes.wanted import Wanted
    from trainplane.client.types.jobs import LogLine
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock

_log = logging.getLogger(__name__)

LINGER_SECONDS: Final = 10.0
"""Seconds that a pod is still read after its TrainJob is over or it was deleted."""
STREAMS: Final = 128
"""Logs that are read at once where they are not followed."""
NAMED: Final = 5
"""Nodes without a pod that a warning names; of more it tells the number."""


@dataclass(frozen=True)
class Reading:
    """The cluster that logs are read from."""

    client: Client
    hub: Hub
    namespace: str
    clock: Clock

    async def now(self, job: Tree, pods: Sequence[Tree], wanted: Wanted) -> AsyncGenerator[LogLine, None]:
        """Yield what there is; raises NotFoundError for a step that there is not, and where pods and logs are gone."""
        check_steps(job, pods, wanted)
        name = str(trees.get(job, "metadata", "name"))
        if not pods and is_finished(conditions_of(job)):
            raise NotFoundError(f"the pods of TrainJob {name} are gone, and their logs with them")
        tell_of_gone(job, pods, wanted)
        # All must be open at once for none to hold up the others; of very many, lines wait for their turn in memory.
        waiting = MergeSettings.waiting if len(pods) <= STREAMS else sys.maxsize
        merger = Merger(self.clock, MergeSettings(exact=True, waiting=waiting))
        readers = self._readers(job, pods, wanted, merger)
        filling = asyncio.create_task(_fill(readers, merger, name))
        try:
            async with aclosing(merger.lines()) as lines:
                if wanted.tail is None:
                    async for line in lines:
                        yield line
                    return
                kept = [line async for line in lines]
            for line in _tails(kept, wanted.tail):
                yield line
        finally:
            filling.cancel()
            await asyncio.gather(filling, return_exceptions=True)

    def _readers(self, job: Tree, pods: Sequence[Tree], wanted: Wanted, merger: Merger) -> list[PodLog | RankLog]:
        called = name_places(pods, job)
        if is_dispatched(job):
            name = str(trees.get(job, "metadata", "name"))
            options: dict[str, Any] = {"follow": False, "is_over": lambda: True, "wanted": wanted}
            return [
                self.rank(name, place, merger.source(called[place]), number=number, **options)
                for place, number in number_places(pods).items()
                if wanted.has(called[place])
            ]
        steps = [(called[place], pod) for pod in sorted(pods, key=created) if (place := index_of(pod))]
        return [
            PodLog(self.client, pod, merger.source(step), self.clock, follow=False, wanted=wanted)
            for step, pod in steps
            if wanted.has(step)
        ]

    def rank(self, name: str, place: PodIndex, source: LogStream, **options: Any) -> RankLog:
        """Return the reader of a rank of a dispatched job."""
        return RankLog(self.client, self.hub.log_path(name), source, self.clock, role=place.replicated_job, **options)

    async def follow(self, name: str, wanted: Wanted) -> AsyncGenerator[LogLine, None]:
        """Yield what is printed from the first line on, until the TrainJob is over."""
        async with Mirror(self.client, self.namespace, name, self.hub, self.clock) as mirror:
            check_steps(mirror.job, mirror.pods, wanted)
            tell_of_gone(mirror.job, mirror.pods, wanted)
            if is_dispatched(mirror.job):
                await self.hub.need(name)
            merger = Merger(self.clock)
            following = asyncio.create_task(_Following(self, mirror, merger, wanted).run())
            try:
                async with aclosing(merger.lines()) as lines:
                    async for line in lines:
                        yield line
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)


class _Following:
    """Sees that each pod of a TrainJob is read."""

    def __init__(self, reading: Reading, mirror: Mirror, merger: Merger, wanted: Wanted) -> None:
        self._reading = reading
        self._mirror = mirror
        self._merger = merger
        self._wanted = wanted
        self._readers: dict[object, PodLog | RankLog] = {}
        self._tasks: dict[object, asyncio.Task[None]] = {}
        self._ends: dict[object, float] = {}

    async def run(self) -> None:
        """Read until the TrainJob is over and all is read, then close the merger."""
        error: Exception | None = None
        try:
            await self._watch()
        except KubeError as caught:
            error = translate(caught, f"logs of TrainJob {self._mirror.name} cannot be read")
        except Exception as caught:  # noqa: BLE001 raised where the lines are read
            error = caught
        finally:
            await self._cancel(list(self._tasks))
        self._merger.close(error)

    async def _watch(self) -> None:
        last_look = False
        while True:
            news, over = self._mirror.news.next, self._mirror.is_over
            self._take(self._mirror.pods)
            if over and not last_look:
                last_look = True
                self._take(await self._pods_now())
                for key in self._readers:
                    self._finish(key)
            for task in self._tasks.values():
                if task.done() and not task.cancelled():
                    task.result()
            if over and all(task.done() for task in self._tasks.values()):
                return
            await self._wait(news)

    def _take(self, pods: Sequence[Tree]) -> None:
        """Read pods that are new, and tell readers of those that changed or are gone."""
        called = name_places(pods, self._mirror.job)
        if is_dispatched(self._mirror.job):
            self._take_ranks(pods, called)
            return
        present = set()
        for pod in sorted(pods, key=created):
            place, uid = index_of(pod), trees.get(pod, "metadata", "uid")
            if place is None or not self._wanted.has(called[place]):
                continue
            present.add(uid)
            reader = self._readers.get(uid)
            if isinstance(reader, PodLog):
                reader.update(pod)
                continue
            reading = self._reading
            source = self._merger.source(called[place])
            self._start(uid, PodLog(reading.client, pod, source, reading.clock, follow=True, wanted=self._wanted))
        for uid in self._readers.keys() - present:
            self._finish(uid)

    def _take_ranks(self, pods: Sequence[Tree], called: Mapping[PodIndex, str]) -> None:
        for place, number in number_places(pods).items():
            if place not in self._readers and self._wanted.has(called[place]):
                reader = self._reading.rank(
                    self._mirror.name,
                    place,
                    self._merger.source(called[place]),
                    number=number,
                    follow=True,
                    is_over=lambda: self._mirror.is_over,
                    wanted=self._wanted,
                )
                self._start(place, reader)

    async def _pods_now(self) -> list[Tree]:
        """Return the pods once more when the TrainJob is over: the last may have come and gone between two events."""
        job, name = self._mirror.job, self._mirror.name
        if is_dispatched(job):
            return await self._reading.hub.pods(name) or []
        labels = {names.LABEL_JOBSET_NAME: name}
        found = await self._reading.client.list_all(PODS, self._reading.namespace, labels=labels)
        return pods_of(job, found)

    def _start(self, key: object, reader: PodLog | RankLog) -> None:
        self._readers[key] = reader
        self._tasks[key] = asyncio.create_task(reader.run())

    def _finish(self, key: object) -> None:
        reader = self._readers[key]
        if isinstance(reader, PodLog):
            reader.finish()
        self._ends.setdefault(key, self._reading.clock.monotonic() + LINGER_SECONDS)

    async def _wait(self, news: asyncio.Event) -> None:
        """Wait for news, the end of a reader, or the moment at which one has lingered long enough."""
        now = self._reading.clock.monotonic()
        ends = {key: end for key, end in self._ends.items() if not self._tasks[key].done()}
        await self._cancel([key for key, end in ends.items() if end <= now])
        soonest = min((end - now for end in ends.values() if end > now), default=None)
        waits = [asyncio.create_task(self._mirror.wait(news, soonest))]
        try:
            running = [task for task in self._tasks.values() if not task.done()]
            await asyncio.wait([*waits, *running], return_when=asyncio.FIRST_COMPLETED)
            if waits[0].done():
                waits[0].result()
        finally:
            waits[0].cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _cancel(self, keys: Sequence[object]) -> None:
        tasks = [self._tasks[key] for key in keys if not self._tasks[key].done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _fill(readers: Sequence[PodLog | RankLog], merger: Merger, name: str) -> None:
    """Run readers to their ends; of very many, the first ones first."""
    places = asyncio.Semaphore(STREAMS)

    async def run(reader: PodLog | RankLog) -> None:
        async with places:
            await reader.run()

    tasks = [asyncio.create_task(run(reader)) for reader in readers]
    error: Exception | None = None
    try:
        await asyncio.gather(*tasks)
    except KubeError as caught:
        error = translate(caught, f"logs of TrainJob {name} cannot be read")
    finally:
        for task in tasks:
            task.cancel()
    merger.close(error)


def _tails(lines: Sequence[LogLine], count: int) -> list[LogLine]:
    """Return the last lines of each step, in the order in which all came."""
    kept: dict[str, deque[int]] = {}
    for place, line in enumerate(lines):
        kept.setdefault(line.step, deque(maxlen=count)).append(place)
    return [lines[place] for place in sorted(place for places in kept.values() for place in places)]


def check_steps(job: Tree, pods: Sequence[Tree], wanted: Wanted) -> None:
    """See that the steps that are asked for are there, or may come; raises NotFoundError that names those there are."""
    there = set(name_places(pods, job).values())
    for step in sorted(wanted.steps or ()):
        if step not in there and (is_finished(conditions_of(job)) or not _may_come(job, step)):
            name = trees.get(job, "metadata", "name")
            known = f": there are {', '.join(sorted(there))}" if there else ""
            raise NotFoundError(f"TrainJob {name} has no step {step!r}{known}")


def tell_of_gone(job: Tree, pods: Sequence[Tree], wanted: Wanted) -> None:
    """Warn of nodes of a finished TrainJob that have no pod: as one fails, the Job controller deletes what still runs.

    With a launcher only gaps are known: whether it is one of `numNodes` is its runtime's to say.
    """
    if not pods or not is_finished(conditions_of(job)) or is_dispatched(job) or wanted.steps is not None:
        return
    there = {int(step.removeprefix(f"{NODE}-")) for place, step in name_places(pods, job).items() if is_training(place)}
    nodes = trees.get(job, "spec", "trainer", "numNodes")
    count = max(there, default=-1) + 1
    if isinstance(nodes, int) and not has_launcher(pods, job):
        count = max(count, nodes)
    gone = count - len(there)
    if gone:
        first = itertools.islice((number for number in range(count) if number not in there), NAMED)
        named = ", ".join(f"{NODE}-{number}" for number in first) + (
            f" and {gone - NAMED} more" if gone > NAMED else ""
        )
        _log.warning(
            "no log of %s: without a pod there is none. Pods that still run when another fails are deleted", named
        )


def _may_come(job: Tree, step: str) -> bool:
    role, _, number = step.rpartition("-")
    known = {entry.get("name") for entry in trees.get(job, "status", "jobsStatus") or ()}
    if step in known | {names.JOB_DATASET, names.JOB_MODEL}:
        return True
    if not number.isdecimal():
        return False
    if role != NODE:
        return role in known
    nodes = trees.get(job, "spec", "trainer", "numNodes")
    return not isinstance(nodes, int) or int(number) <= nodes
