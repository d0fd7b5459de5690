"""Follows the log of one container, through cuts and restarts, into journals: every line once, in its order.

The pod's status says which run of the container there is (`restartCount`); each run has a journal. A run's log is
followed from where its journal ends. That a stream ends means little: a kubelet or an API server that stops ends it as
cleanly as the container does. So after each end the pod is read afresh, and only when the container has ended or gone
on to its next run is the rest read once more, without following, and the journal finished.

What can be lost: lines printed while the worker cannot be reached, if meanwhile the kubelet rotates the log (the
journal then says so in a line of its own), if the container restarts twice, or if the pod is deleted before the worker
is back. Where more containers run than can be followed (`streams`), a log is read at intervals instead, and the same
holds of each.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from contextlib import aclosing
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from trainplane.hub.errors import HubError, NotKeptError
from trainplane.hub.logarchive.lines import note
from trainplane.hub.logarchive.pod import parse
from trainplane.hub.logarchive.streams import TURN_SECONDS
from trainplane.kube import containerlogs
from trainplane.kube.backoff import Backoff
from trainplane.kube.containerlogs import Resumption, resumed_from, since_time
from trainplane.kube.errors import BadRequestError, ForbiddenError, KubeError, NotFoundError, UnauthorizedError
from trainplane.kube.resource import PODS

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.hub.logarchive.archive import Archive
    from trainplane.hub.logarchive.journal import Journal
    from trainplane.hub.logarchive.keptjob import KeptJob, KeptPod
    from trainplane.hub.logarchive.pod import Pod
    from trainplane.hub.logarchive.streams import Streams
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock

log = logging.getLogger(__name__)

ENDED: Final = "ended"
GONE: Final = "gone"
QUIET_SECONDS: Final = 0.15
"""Seconds without a line after which what was printed before counts as read."""

DOUBTS: Final = 2
"""How often a stream that does not join what is kept is put aside, for the pod's status may lag behind its kubelet."""
DOUBT_SECONDS: Final = 1.0
REFUSED_SECONDS: Final = 30.0
"""Seconds until a worker that does not let MultiKueue's user read logs is asked again."""

_LOST: Final = "lines may be missing here: the log was rotated on the worker while the hub could not read it"


class _DoubtError(Exception):
    """The stream does not join what is kept: the log was rotated, or it is another run's than the status says."""


@dataclass
class Follower:
    """Follows one container of one pod. `run` until the pod is gone; `update` and `leave` tell it of the pod."""

    archive: Archive
    job: KeptJob
    pod: KeptPod
    container: str
    connect: Callable[[], Client]
    """Returns the client of the pod's cluster, as it is now."""
    clock: Clock
    streams: Callable[[], Streams]
    """Returns how many logs of the pod's cluster are read at a time."""
    backoff: Backoff = field(default_factory=lambda: Backoff(base=0.2, cap=10.0))
    """Waits between tries; a change of the pod ends them early, and so does the collector when the worker is back."""
    random: Random = field(default_factory=Random)
    problem: str | None = None
    """Why lines do not come at present, or come late, for people."""
    gaps: int = 0
    """How often lines were found to be lost."""

    def __post_init__(self) -> None:
        self.current = asyncio.Event()
        """Set once all that was printed before the follower began is kept, or cannot be reached."""
        self._changed = asyncio.Event()
        self._is_gone = False
        self._failures = 0
        self._doubts = 0
        self._half: tuple[Journal, bytes] | None = None
        self._shortage: str | None = None

    def update(self) -> None:
        """The pod has changed, or its cluster is back."""
        self._changed.set()

    def leave(self) -> None:
        """The pod was deleted."""
        self._is_gone = True
        self._changed.set()

    async def run(self) -> None:
        """Follow until the pod is gone and its last line kept."""
        while True:
            self._changed.clear()
            try:
                self._shortage = None
                wait = await self._step()
                self.problem = self._shortage
            except (NotFoundError, NotKeptError):
                break
            except _DoubtError:
                wait = DOUBT_SECONDS
            except (KubeError, HubError, OSError) as error:
                if self.archive.job(self.job.record.uid) is not self.job:
                    break  # it went by retention, and its worker may never be back
                wait = self._failed(error)
            self.current.set()
            if wait is None and self._is_gone:
                break
            await self._pause(wait)
        self._finish_all()

    async def _step(self) -> float | None:
        """Read what there is to read; return the seconds after which to look again, None to wait for a change."""
        run = run_of(self.pod.pod, self.container)
        if run is None:
            return None
        if run > 0 and await self._drain_former(run - 1):
            return 0.0
        journal = self.pod.journal(self.container, run)
        if journal.ended is not None:
            return None
        client = self.connect()
        if journal.end == 0 and run_of(await self._look(client), self.container) != run:
            return 0.0  # what we were told of the pod was old, and an empty journal would take any run's lines
        doubt = False
        if not has_ended(self.pod.pod, self.container):
            try:
                await self._read_on(client, journal)
            except _DoubtError:
                doubt = True
        pod = await self._look(client)
        now = run_of(pod, self.container)
        if now == run and not has_ended(pod, self.container):
            return self._pause_of(doubt=doubt)
        if now == run or now == run + 1:
            await self._read(client, journal, previous=now != run)
        self.archive.finish(self.job, journal, ENDED if now in {run, run + 1} else GONE)
        return 0.0

    def _pause_of(self, *, doubt: bool) -> float:
        """Return the seconds after which to read on, of a container that runs although its stream has ended."""
        if self._shortage is not None and not doubt:
            return TURN_SECONDS
        self._failures += 1
        return DOUBT_SECONDS if doubt else self.backoff.delay(self._failures, self.random)

    async def _read_on(self, client: Client, journal: Journal) -> None:
        """Follow the log of a container that runs; read what there is of it where no more can be followed."""
        streams = self.streams()
        with streams.place() as is_followed:
            if is_followed:
                await self._read(client, journal, follow=True, is_over=False)
        if not is_followed:
            self.problem = self._shortage = streams.shortage
            await self._read(client, journal, is_over=False)

    async def _look(self, client: Client) -> Pod:
        """Return the pod as it is now, and keep it; raises NotFoundError also if the name is another pod's."""
        pod = parse(await client.get(PODS, self.pod.name, self.job.record.namespace, type_=bytes))
        if pod.uid != self.pod.uid:
            raise NotFoundError(f"pod {self.pod.name} is another one now")
        self.archive.put_pod(self.job, self.pod.cluster, pod)
        return pod

    async def _drain_former(self, run: int) -> bool:
        """Read the rest of the run before this one if that was not read to its end; say whether anything was done."""
        journal = self.pod.journal(self.container, run)
        if journal.ended is not None:
            return False
        try:
            await self._read(self.connect(), journal, previous=True)
        except BadRequestError:  # the kubelet has removed it
            self.archive.finish(self.job, journal, GONE)
        else:
            self.archive.finish(self.job, journal, ENDED)
        return True

    async def _read(
        self, client: Client, journal: Journal, *, follow: bool = False, previous: bool = False, is_over: bool = True
    ) -> None:
        """Read a log from where its journal ends to where the stream does; `is_over`: no more will be printed."""
        newest = journal.newest()
        resumption = Resumption([] if newest is None else journal.since(resumed_from(newest)))
        stream = containerlogs.read(
            client,
            self.job.record.namespace,
            self.pod.name,
            self.container,
            follow=follow,
            previous=previous,
            since=None if newest is None else since_time(newest),
        )
        self._half = None
        quiet = _Quiet(self.current)
        try:
            async with contextlib.nullcontext() if follow else self.streams().reads, aclosing(stream) as batches:
                async for batch in batches:
                    quiet.disturb()
                    self.problem = self._shortage
                    self._keep(journal, resumption, batch.lines)
                    if batch.rest and is_over:
                        self._keep(journal, resumption, [batch.rest])
                    elif batch.rest:  # a whole line only if the container has ended, and then it comes again
                        self._half = journal, batch.rest
        finally:
            quiet.end()

    def _keep(self, journal: Journal, resumption: Resumption, lines: list[bytes]) -> None:
        had_gap = resumption.gap
        new = resumption.feed(lines)
        if not new:
            return
        if journal.end == 0 and self.archive.adopt(self.job, self.pod, self.container, journal, new[0]):
            raise _DoubtError
        if resumption.gap and not had_gap:
            self._doubts += 1
            if self._doubts <= DOUBTS:
                raise _DoubtError
            new = [note(new[0], _LOST), *new]
            self.gaps += 1
        self._doubts = self._failures = 0
        self.archive.append(self.job, journal, new)

    def _failed(self, error: Exception) -> float:
        self._failures += 1
        self.problem = str(error)
        log.log(
            logging.WARNING if self._failures == 5 else logging.INFO,
            "log cannot be read now",
            extra={
                "cluster": self.pod.cluster,
                "container": f"{self.job.record.namespace}/{self.pod.name}/{self.container}",
                "error": str(error),
            },
        )
        if isinstance(error, ForbiddenError | UnauthorizedError):
            return REFUSED_SECONDS
        return self.backoff.delay(self._failures, self.random)

    def _finish_all(self) -> None:
        """The pod is gone: what its journals have is all there will be, with the line that had no newline yet."""
        if self._half is not None and self._half[0].ended is None:
            with contextlib.suppress(HubError, OSError):
                self.archive.append(self.job, self._half[0], [self._half[1]])
        for (container, _), journal in list(self.pod.runs.items()):
            if container == self.container:
                self.archive.finish(self.job, journal, GONE)
        self.job.tell()

    async def _pause(self, seconds: float | None) -> None:
        if seconds is None:
            await self._changed.wait()
            return
        with contextlib.suppress(TimeoutError):
            async with self.clock.timeout(seconds):
                await self._changed.wait()


class _Quiet:
    """Sets an event when nothing has come for a moment."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event
        self._timer: asyncio.TimerHandle | None = None

    def disturb(self) -> None:
        self.end()
        if not self._event.is_set():
            self._timer = asyncio.get_running_loop().call_later(QUIET_SECONDS, self._event.set)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def run_of(pod: Pod, container: str) -> int | None:
    """Return the number of the run whose log is the container's now; None before the first has begun."""
    status = pod.status_of(container)
    if status is None:
        return None
    states = [state for state in (status.state, status.last_state) if state is not None]
    has_begun = any(state.running is not None or state.terminated is not None for state in states)
    return status.restart_count if has_begun else None


def has_ended(pod: Pod, container: str) -> bool:
    """Return whether a container is not running, or has never run."""
    status = pod.status_of(container)
    return status is None or status.state is None or status.state.running is None
