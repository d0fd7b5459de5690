"""The log of one pod's container, from its first line, through cuts and restarts: every line once, in its order.

The pod's status says which run of the container there is (`restartCount`). A run is followed from the last line that
was read of it. That a stream ends means little: a kubelet or an API server that stops ends it as cleanly as a container
does. So after each end the pod is read afresh, and only when the container has ended or gone on to its next run is the
rest read once more, without following, and the run over. A pod's status may lag behind its kubelet: a stream that does
not join what was read is another run's, until the status has said twice that it is not.

What can be lost: lines printed while the cluster cannot be reached, if meanwhile the kubelet rotates the log, the
container restarts twice, or the pod is deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from contextlib import aclosing
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.client.reading.pods import ENDED, container_name, container_status, name_of, phase_of
from trainplane.kube import containerlogs
from trainplane.kube.backoff import Backoff
from trainplane.kube.containerlogs import Resumption, nanoseconds, resumed_from, since_time
from trainplane.kube.errors import BadRequestError, ForbiddenError, KubeError, NotFoundError, UnauthorizedError
from trainplane.kube.resource import PODS

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.client.backends.kubernetes.merging import LogStream
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock

BACKOFF: Final = Backoff(base=0.1, cap=3.0)
TRIES: Final = 5
"""How often a log that is not followed is asked for."""


DOUBTS: Final = 2
"""How often a stream that does not join what was read is put aside."""
DOUBT_SECONDS: Final = 1.0


class _DoubtError(Exception):
    """The stream does not join what was read: the log was rotated, or it is another run's than the status says."""


@dataclass
class Run:
    """What was read of one run of a container."""

    number: int
    newest: int | None = None
    recent: deque[bytes] = field(default_factory=deque)
    """The last lines."""
    first: bytes | None = None
    over: bool = False

    def again(self) -> list[bytes]:
        """Return the lines that come again when the stream is resumed: by each one's own time."""
        oldest = resumed_from(self.newest or 0)
        return [line for line in self.recent if (nanoseconds(line) or 0) >= oldest]

    def adopt(self, other: Run) -> None:
        """Take over what was read as another run's and turned out to be this one's."""
        self.newest, self.recent, self.first = other.newest, deque(other.recent), other.first

    def keep(self, lines: list[bytes]) -> None:
        """Take note of lines that were read."""
        self.first = self.first or lines[0]
        for line in lines:
            self.newest = max(self.newest or 0, nanoseconds(line) or 0)
        self.recent.extend(lines)
        oldest = resumed_from(self.newest or 0)
        while self.recent and (nanoseconds(self.recent[0]) or 0) < oldest:
            self.recent.popleft()


class PodLog:
    """Reads one pod into a source; `update`, `leave` and `finish` tell it what becomes of the pod and its TrainJob."""

    def __init__(
        self, client: Client, pod: Tree, source: LogStream, clock: Clock, *, follow: bool, tail: int | None = None
    ) -> None:
        self._client = client
        self._pod = pod
        self._source = source
        self._clock = clock
        self._follow = follow
        self._tail = tail
        self._container = container_name(pod)
        self._runs: dict[int, Run] = {}
        self._changed = asyncio.Event()
        self._is_over = not follow
        self._failures = 0
        self._doubts = 0
        self._random = Random()  # noqa: S311 jitter is no secret

    def update(self, pod: Tree) -> None:
        """The pod has changed."""
        self._pod = pod
        self._changed.set()

    def finish(self) -> None:
        """The TrainJob is over, or the pod is deleted: what is printed now is all there will be."""
        if not self._is_over:
            self._is_over = True
            self._changed.set()

    async def run(self) -> None:
        """Read until nothing more can come. Raises ForbiddenError and UnauthorizedError; without `follow`, all."""
        try:
            while True:
                self._changed.clear()
                try:
                    wait = await self._step()
                except NotFoundError:
                    return
                except _DoubtError:
                    wait = DOUBT_SECONDS
                except (ForbiddenError, UnauthorizedError):
                    raise
                except KubeError:
                    self._failures += 1
                    if not self._follow and self._failures >= TRIES:
                        raise
                    wait = BACKOFF.delay(self._failures, self._random)
                if wait is None:
                    if self._is_over or phase_of(self._pod) in ENDED:
                        return
                    await self._changed.wait()
                elif wait > 0:
                    await self._pause(wait)
        finally:
            self._source.end()

    async def _step(self) -> float | None:
        """Read what there is to read; return the seconds after which to look again, None to wait for a change."""
        if self._follow and (run_of(self._pod, self._container) is not None or self._is_over):
            await self._look()  # what we were told of the pod may be old
        number = run_of(self._pod, self._container)
        if number is None:
            return None
        if number > 0 and self._tail is None and await self._read_former(number - 1):
            return 0.0
        run = self._runs.setdefault(number, Run(number))
        if run.over:
            return None
        if self._follow and not has_ended(self._pod, self._container):
            await self._read(run, follow=True)
            return await self._after(run)
        await self._read(run)
        run.over = True
        return 0.0

    async def _after(self, run: Run) -> float:
        """Find out why a followed stream has ended; if its run has, read the rest of that."""
        await self._look()
        now = run_of(self._pod, self._container)
        if now == run.number and not has_ended(self._pod, self._container):
            self._failures += 1
            return BACKOFF.delay(self._failures, self._random)
        if now is not None and now <= run.number + 1:
            await self._read(run, previous=now != run.number)
        run.over = True
        return 0.0

    async def _look(self) -> None:
        """Read the pod as it is now; raises NotFoundError also if the name is another pod's."""
        pod = await self._client.get(PODS, name_of(self._pod), trees.get(self._pod, "metadata", "namespace"))
        if trees.get(pod, "metadata", "uid") != trees.get(self._pod, "metadata", "uid"):
            raise NotFoundError(f"pod {name_of(pod)} is another one now")
        self._pod = pod

    async def _read_former(self, number: int) -> bool:
        """Read the rest of the run before this one if that was not read to its end; say whether anything was done."""
        run = self._runs.setdefault(number, Run(number))
        if run.over:
            return False
        with contextlib.suppress(BadRequestError):  # the kubelet has removed it
            await self._read(run, previous=True)
        run.over = True
        return True

    async def _read(self, run: Run, *, follow: bool = False, previous: bool = False) -> None:
        """Read a run from the last line read to where the stream ends."""
        resumption = Resumption(run.again())
        stream = containerlogs.read(
            self._client,
            str(trees.get(self._pod, "metadata", "namespace")),
            name_of(self._pod),
            self._container,
            follow=follow,
            previous=previous,
            since=None if run.newest is None else since_time(run.newest),
            tail=self._tail if run.newest is None else None,
        )
        self._source.connect()
        async with aclosing(stream) as batches:
            async for batch in batches:
                self._source.connected()
                # What has no newline is a whole line only if the container has ended, and then it comes again.
                lines = batch.lines if follow or not batch.rest else [*batch.lines, batch.rest]
                had_gap = resumption.gap
                new = resumption.feed(lines)
                if new:
                    self._check(run, new[0], gap=resumption.gap and not had_gap)
                    run.keep(new)
                    await self._source.put(new)

    def _check(self, run: Run, first: bytes, *, gap: bool) -> None:
        """See that new lines are this run's; raises _DoubtError."""
        former = self._runs.get(run.number - 1)
        if run.first is None and former is not None and former.first == first:
            run.adopt(former)
            raise _DoubtError
        if gap:
            self._doubts += 1
            if self._doubts <= DOUBTS:
                raise _DoubtError
        self._doubts = self._failures = 0

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with self._clock.timeout(seconds):
                await self._changed.wait()


def run_of(pod: Tree, container: str) -> int | None:
    """Return the number of the run whose log is the container's now; None before the first has begun."""
    status = container_status(pod, container)
    states = {*(status.get("state") or {}), *(status.get("lastState") or {})}
    return int(status.get("restartCount") or 0) if states & {"running", "terminated"} else None


def has_ended(pod: Tree, container: str) -> bool:
    """Return whether a container is not running."""
    return "running" not in (container_status(pod, container).get("state") or {})
