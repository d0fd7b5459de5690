"""A TrainJob watched by somebody who wants to see all of it: its changes, metrics, last lines, and what it waits for.

The watch tells of changes at once. The rest has no watch and is asked for, with bounds that do not depend on what the
training does: last lines of MOST_LINES steps however much they print, history, timeline and queue every ten seconds,
an explanation, which reads the logs of all steps, only when the job failed or nothing happened for a while.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING, Final

from trainplane.client.errors import NotFoundError, TrainplaneError
from trainplane.client.reading.queues import read_answer
from trainplane.client.types.jobs import FAILED, FINISHED, SUSPENDED
from trainplane.client.types.observation import Observation
from trainplane.explain.explain import explain

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from trainplane.client.backends.backend import Backend
    from trainplane.client.reading.history import Points
    from trainplane.client.types.descriptions import QueueAnswer
    from trainplane.client.types.jobs import Progress, Step, TrainJob

MOST_LINES: Final = 24
"""Steps whose last line is asked for."""
MOST_METRICS: Final = 12
MOST_POINTS: Final = 512
"""Of one metric; beyond, every second of them goes."""
_STEPS_A_SECOND: Final = 50
"""A job of very many nodes is asked for its lines more seldom: its pods are listed for that."""


@dataclass(frozen=True)
class Pace:
    """How often what cannot be watched is asked for, in seconds."""

    lines: float = 2.0
    details: float = 10.0
    queue: float = 30.0
    """Why it is queued: a hub asks all its workers for that."""
    quiet: float = 45.0
    """Without any change for so long, a job is explained; and again after as long."""


async def observe(backend: Backend, name: str, pace: Pace | None = None) -> AsyncGenerator[Observation, None]:
    """Yield what is seen, after each change, until the TrainJob is over or deleted: see `Observation`.

    Changes that come while nobody takes them are one. Raises NotFoundError if there is no such TrainJob, and what else
    ends its watch.
    """
    observer = _Observer(backend, name, pace or Pace())
    watching = asyncio.create_task(observer.watch())
    asking = [asyncio.create_task(observer.ask_lines()), asyncio.create_task(observer.ask_details())]
    try:
        while not watching.done():
            await _first(watching, observer.news)
            if observer.seen is not None and not watching.done():
                yield observer.take()
        await watching
        await _end(asking)
        if observer.seen is not None:
            await observer.look_last()
            yield observer.take()
    finally:
        await _end([watching, *asking])


class _Observer:
    """Puts together what is seen of one TrainJob."""

    def __init__(self, backend: Backend, name: str, pace: Pace) -> None:
        self.seen: Observation | None = None
        self.news = asyncio.Event()
        self._there = asyncio.Event()
        self._backend = backend
        self._name = name
        self._pace = pace
        self._reported: dict[str, Points] = {}
        self._kept: Mapping[str, Points] = {}
        self._explained = 0.0
        """When a change was seen, or it was explained, by the loop's clock."""
        self._asked = float("-inf")
        """When it was asked why it is queued, by the same clock."""

    def take(self) -> Observation:
        """Return what is seen now."""
        self.news.clear()
        if self.seen is None:
            raise AssertionError("taken before anything was seen")
        return self.seen

    async def watch(self) -> None:
        """Take in changes until the job is over or deleted."""
        async with aclosing(self._backend.watch_job(self._name)) as changes:
            async for job in changes:
                self._explained = asyncio.get_running_loop().time()
                if job.progress is not None:
                    self._reported = with_report(self._reported, job.progress)
                before = self.seen or Observation(job)
                moved_on = before.job.status != job.status
                self._show(
                    replace(
                        before,
                        job=job,
                        metrics=joined(self._kept, self._reported),
                        queue=None if moved_on else before.queue,
                        explanation=None,
                    )
                )
                if job.status in FINISHED:
                    return
        if self.seen is not None:
            self._show(replace(self.seen, is_deleted=True))

    async def ask_lines(self) -> None:
        """Ask for last lines again and again."""
        await self._there.wait()
        while self.seen is not None:
            await self._look_at_lines(self.seen.job)
            await asyncio.sleep(max(self._pace.lines, len(self.seen.job.steps) / _STEPS_A_SECOND))

    async def ask_details(self) -> None:
        """Ask for history, timeline, queue and, after a silence, an explanation, again and again."""
        await self._there.wait()
        while self.seen is not None:
            await self._look_at_details()
            quiet = asyncio.get_running_loop().time() - self._explained
            if quiet >= self._pace.quiet and self.seen.job.status != SUSPENDED:
                await self._explain()
            await asyncio.sleep(self._pace.details)

    async def look_last(self) -> None:
        """Look at everything once more: the job is over."""
        if self.seen is None or self.seen.is_deleted:
            return
        await asyncio.gather(self._look_at_lines(self.seen.job), self._look_at_details())
        if self.seen.job.status == FAILED:
            await self._explain()

    async def _look_at_lines(self, job: TrainJob) -> None:
        steps = worth_reading(job.steps)
        if not steps:
            return
        found: dict[str, str] = {}
        try:
            async with aclosing(self._backend.read_logs(self._name, steps, follow=False, tail=1)) as lines:
                async for line in lines:
                    found[line.step] = line.text
        except NotFoundError:
            return  # its pods went meanwhile; the watch tells
        except TrainplaneError as error:
            self._cannot("logs", error)
            return
        if self.seen is not None:
            there = {step.name for step in self.seen.job.steps}
            kept = {step: text for step, text in self.seen.lines.items() if step in there}
            self._show(replace(self.seen, lines=kept | found, unread=self._readable("logs")))

    async def _look_at_details(self) -> None:
        if self.seen is None:
            return
        try:
            job = await self._backend.get_job(self._name)
            queue = await self._why_queued() if job.status == SUSPENDED else None
        except NotFoundError:
            return
        except TrainplaneError as error:
            self._cannot("details", error)
            return
        self._kept = job.metrics_history
        metrics, unread = joined(self._kept, self._reported), self._readable("details")
        self._show(replace(self.seen, metrics=metrics, timeline=job.timeline, queue=queue, unread=unread))

    async def _why_queued(self) -> QueueAnswer | None:
        now, known = asyncio.get_running_loop().time(), self.seen.queue if self.seen else None
        if known is not None and now - self._asked < self._pace.queue:
            return known
        self._asked = now
        told = await self._backend.explain_queue(self._name)
        return read_answer(told) if told else None

    async def _explain(self) -> None:
        self._explained = asyncio.get_running_loop().time()
        try:
            told = explain(await self._backend.collect(self._name), datetime.now(UTC))
        except NotFoundError:
            return
        except TrainplaneError as error:
            self._cannot("explanation", error)
            return
        if self.seen is not None:
            explained = told if told.cause else None
            self._show(replace(self.seen, explanation=explained, unread=self._readable("explanation")))

    def _cannot(self, what: str, error: TrainplaneError) -> None:
        if self.seen is not None:
            self._show(replace(self.seen, unread={**self.seen.unread, what: str(error)}))

    def _readable(self, what: str) -> dict[str, str]:
        """Return what cannot be read, without what just could."""
        return {part: why for part, why in (self.seen.unread if self.seen else {}).items() if part != what}

    def _show(self, seen: Observation) -> None:
        if seen != self.seen:
            self.seen = seen
            self.news.set()
            self._there.set()


def worth_reading(steps: Sequence[Step], most: int = MOST_LINES) -> list[str]:
    """Return the steps whose last line is worth a look: what failed, then what was started again, then the first."""

    def rank(step: Step) -> tuple[bool, bool]:
        return step.status != "Failed", not step.restarts

    printed = [step for step in steps if step.status in {"Running", "Succeeded", "Failed"}]
    return [step.name for step in sorted(printed, key=rank)[:most]]


def with_report(points: Mapping[str, Points], progress: Progress) -> dict[str, Points]:
    """Return the points of metrics with those of a report, each once; what is no number is no point."""
    found = dict(points)
    when = progress.updated
    if when is None:
        return found
    for name, text in list(progress.metrics.items())[:MOST_METRICS]:
        with suppress(ValueError):
            value = float(text)
            before = found.get(name, ())
            if isfinite(value) and (not before or before[-1][0] < when):
                found[name] = thinned((*before, (when, value)))
    return dict(list(found.items())[-MOST_METRICS:])


def thinned(points: Points) -> Points:
    """Return points that are not too many: of too many every second one, and the newest."""
    return points if len(points) <= MOST_POINTS else (*points[:-1:2], points[-1])


def joined(kept: Mapping[str, Points], reported: Mapping[str, Points]) -> dict[str, Points]:
    """Return what is kept of each metric up to what was seen, then that; the newest reported metrics come first."""
    names = list(dict.fromkeys([*reported, *kept]))[:MOST_METRICS]
    found = {}
    for name in names:
        seen = reported.get(name, ())
        before = tuple(point for point in kept.get(name, ()) if not seen or point[0] < seen[0][0])
        found[name] = before + seen
    return found


async def _first(task: asyncio.Task[None], event: asyncio.Event) -> None:
    """Wait for the end of a task or an event, whichever is first."""
    waiting = asyncio.create_task(event.wait())
    try:
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
