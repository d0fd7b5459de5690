"""Follows the log of one container, through cuts and restarts, into a sink: every line once, in its order.

The pod's status says which run of the container there is (`restartCount`). A run's log is followed from the last line
that its sink has. That a stream ends means little: a kubelet or an API server that stops ends it as cleanly as the
container does. So after each end the pod is read afresh, and only when the container has ended or gone on to its next
run is the rest read once more, without following, and the run finished. A status may lag behind its kubelet: a stream
that does not join what the sink has is another run's, until the status has said twice that it is not.

What can be lost: lines printed while the cluster cannot be reached, if meanwhile the kubelet rotates the log (the sink
is told of it), if the container restarts twice, or if the pod is deleted before the cluster is back. Where more
containers run than can be followed (`Places`), a log is read at intervals instead, and the same holds of each.
"""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

from trainplane.kube import containerlogs
from trainplane.kube.backoff import Backoff
from trainplane.kube.containerlogs import Resumption, resumed_from, since_time
from trainplane.kube.errors import BadRequestError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.resource import Key

ENDED: Final = "ended"
"""A run of which all was read."""
GONE: Final = "gone"
"""A run of which nothing more can be read."""
QUIET_SECONDS: Final = 0.15
"""Seconds without a line after which what was printed before counts as read."""
TURN_SECONDS: Final = 10.0
"""Seconds between two readings of a log that has no place to be followed: a thousand such are a hundred requests a
second for their cluster."""
DOUBTS: Final = 2
"""How often a stream that does not join what is kept is put aside, for the pod's status may lag behind its kubelet."""
DOUBT_SECONDS: Final = 1.0
LEFT_SECONDS: Final = 30.0
"""Seconds without a line after which the stream of a pod that is gone is given up: a kubelet ends it with the pod, and
one whose machine was lost may never do."""


class ContainerState(NamedTuple):
    """What a pod's status says of a container."""

    run: int | None
    """The number of the run whose log is the container's now; None before the first has begun."""
    is_running: bool
    is_last: bool = False
    """Whether no other run will come that the sink waits for."""


class Run(Protocol):
    """What a sink has of one run of a container."""

    @property
    def ended(self) -> str | None:
        """Why there will be no more lines; None while there may be."""

    @property
    def end(self) -> int:
        """How much was ever put; 0 before the first line."""

    def newest(self) -> int | None:
        """Return the time of the last line, in nanoseconds; None if there is none."""

    def since(self, moment: int) -> list[bytes]:
        """Return the lines that are not older than a time, in their order."""


class Sink(Protocol):
    """Where the lines of a container go, and what is known there of its pod."""

    def state(self) -> ContainerState:
        """Return what was last told of the container; it may be old."""

    async def look(self, client: Client) -> ContainerState:
        """Return how the container is now; raises NotFoundError if the pod is gone, or its name is another pod's."""

    def kept(self, number: int) -> Run:
        """Return what there is of a run."""

    def adopt(self, number: int, first: bytes) -> bool:
        """Give an empty run what the run before it has if that begins with this line, and so is the same; say whether.

        A status that lags behind the kubelet can make the lines of a run be taken for those of the one before, where
        that had printed nothing. Times of nanoseconds make sure that it is the same line.
        """

    async def put(self, number: int, lines: Sequence[bytes], *, gap: bool) -> None:
        """Take new lines of a run; `gap`: lines before them may be lost."""

    def over(self, number: int, reason: str) -> None:
        """A run is over: `ENDED` or `GONE`."""

    def failed(self, error: Exception, failures: int) -> float | None:
        """Return the seconds after which to try again, 0 for the usual; None to give up; raises what none can mend."""

    async def close(self, half: tuple[int, bytes] | None) -> None:
        """The pod is gone, or it was given up; `half` is the last line of a run, if that came without its newline."""

    def connecting(self) -> None:
        """A stream is asked for."""
        return

    def connected(self) -> None:
        """A stream is open, or has brought something."""
        return


SinkT = TypeVar("SinkT", bound=Sink)


class Places(Protocol):
    """How many logs of a cluster are read at a time."""

    @property
    def reads(self) -> AbstractAsyncContextManager[Any]:
        """The place of a log that is read once, free again in a moment."""

    @property
    def shortage(self) -> str:
        """What the reader of a log is told that cannot be followed."""

    def place(self) -> AbstractContextManager[bool]:
        """Take a place to follow a log for the time of the context; say whether there is one."""


class Unbounded:
    """Places for all."""

    reads = contextlib.nullcontext()
    shortage = ""

    def place(self) -> AbstractContextManager[bool]:
        """Take a place."""
        return contextlib.nullcontext(enter_result=True)


class _DoubtError(Exception):
    """The stream does not join what is kept: the log was rotated, or it is another run's than the status says."""


@dataclass
class Follower(Generic[SinkT]):
    """Follows one container of one pod. `run` until nothing more can come; `update`, `leave` and `finish` tell it why.

    Without `follow`, what there is now is read once.
    """

    sink: SinkT
    pod: Key
    container: str
    connect: Callable[[], Client]
    """Returns the client of the pod's cluster, as it is now."""
    clock: Clock
    places: Callable[[], Places] = Unbounded
    """Returns how many logs of the pod's cluster are read at a time."""
    follow: bool = True
    tail: int | None = None
    """Only so many last lines of the present run, and nothing of the one before."""
    since: str | None = None
    """Only lines that are not older, as `sinceTime` says it: to the second."""
    backoff: Backoff = field(default_factory=lambda: Backoff(base=0.2, cap=10.0))
    """Waits between tries; `update` ends them early."""
    random: Random = field(default_factory=Random)
    problem: str | None = None
    """Why lines do not come at present, or come late, for people."""

    def __post_init__(self) -> None:
        self.current = asyncio.Event()
        """Set once all that was printed before the follower began is in the sink, or cannot be reached."""
        self._changed = asyncio.Event()
        self._is_gone = False
        self._patience: asyncio.Timeout | None = None
        """Bounds the stream that is open, once the pod is gone."""
        self._is_over = not self.follow
        self._is_last = False
        self._failures = 0
        self._doubts = 0
        self._half: tuple[int, bytes] | None = None
        self._shortage: str | None = None

    def update(self) -> None:
        """The pod has changed, or its cluster is back."""
        self._changed.set()

    def finish(self) -> None:
        """What is printed by now is all there will be, although the pod may still be there."""
        if not self._is_over:
            self._is_over = True
            self._changed.set()

    def leave(self) -> None:
        """The pod was deleted."""
        self._is_gone = self._is_over = True
        self._bound()
        self._changed.set()

    async def run(self) -> None:
        """Follow until the last line is in the sink. Raises what the sink does not wait for."""
        while True:
            self._changed.clear()
            wait: float | None
            try:
                self._shortage = None
                wait = await self._step()
                self.problem = self._shortage
            except NotFoundError:
                break
            except _DoubtError:
                wait = DOUBT_SECONDS
            except Exception as error:  # noqa: BLE001 the sink raises what it does not wait for
                self._failures += 1
                self.problem = str(error)
                wait = self.sink.failed(error, self._failures)
                if wait is None:
                    break
                wait = wait or self.backoff.delay(self._failures, self.random)
            self.current.set()
            if wait is None and (self._is_over or self._is_last):
                break
            await self._pause(wait)
        half = self._half
        await self.sink.close(half if half and self.sink.kept(half[0]).ended is None else None)

    async def run_former(self) -> None:
        """Read the run before the present one instead, where there is one and the kubelet still has it.

        Raises what the API server says; a pod that is gone has none.
        """
        number = self.sink.state().run
        if number:
            with contextlib.suppress(NotFoundError):
                await self._read_former(number - 1)
        await self.sink.close(None)

    async def _step(self) -> float | None:
        """Read what there is to read; return the seconds after which to look again, None to wait for a change."""
        state = self.sink.state()
        if self.follow and self._is_over and not self._is_gone:
            state = await self.sink.look(self.connect())  # it may have begun, or begun anew, since we were told
        self._is_last = state.is_last
        number = state.run
        if number is None:
            return None
        if number > 0 and self.tail is None and await self._read_former(number - 1):
            return 0.0
        if self.sink.kept(number).ended is not None:
            return None
        client = self.connect()
        doubt = False
        if self.follow:
            if self.sink.kept(number).end == 0 and (await self.sink.look(client)).run != number:
                return 0.0  # what we were told of the pod was old, and an empty run would take any other's lines
            if self.sink.state().is_running:
                doubt = await self._read_on(client, number)
            state = await self.sink.look(client)
            if state.run == number and state.is_running:
                return self._pause_of(doubt=doubt)
        if state.run in {number, number + 1}:
            await self._read(client, number, previous=state.run != number)
            self.sink.over(number, ENDED)
        else:
            self.sink.over(number, GONE)
        return 0.0

    def _pause_of(self, *, doubt: bool) -> float:
        """Return the seconds after which to read on, of a container that runs although its stream has ended."""
        if self._shortage is not None and not doubt:
            return TURN_SECONDS
        self._failures += 1
        return DOUBT_SECONDS if doubt else self.backoff.delay(self._failures, self.random)

    async def _read_on(self, client: Client, number: int) -> bool:
        """Follow a container that runs, or read what there is where no more can be followed; say whether in doubt."""
        places = self.places()
        try:
            with places.place() as is_followed:
                if is_followed:
                    await self._read(client, number, follow=True, is_over=False)
            if not is_followed:
                self.problem = self._shortage = places.shortage
                await self._read(client, number, is_over=False)
        except _DoubtError:
            return True
        return False

    async def _read_former(self, number: int) -> bool:
        """Read the rest of the run before this one if that was not read to its end; say whether anything was done."""
        if self.sink.kept(number).ended is not None:
            return False
        try:
            await self._read(self.connect(), number, previous=True)
        except BadRequestError:  # the kubelet has removed it
            self.sink.over(number, GONE)
        else:
            self.sink.over(number, ENDED)
        return True

    async def _read(
        self, client: Client, number: int, *, follow: bool = False, previous: bool = False, is_over: bool = True
    ) -> None:
        """Read a run from the last line of the sink to where the stream ends; `is_over`: no more will be printed.

        Raises NotFoundError if the pod is gone and its stream brings nothing more, nor ends.
        """
        run = self.sink.kept(number)
        newest = run.newest()
        resumption = Resumption([] if newest is None else run.since(resumed_from(newest)))
        stream = containerlogs.read(
            client,
            *self.pod,
            self.container,
            follow=follow,
            previous=previous,
            since=self.since if newest is None else since_time(newest),
            tail=self.tail if newest is None else None,
        )
        self._half = None
        quiet = _Quiet(self.current)
        self.sink.connecting()
        try:
            async with (
                contextlib.nullcontext() if follow else self.places().reads,
                asyncio.timeout(None) as self._patience,
                aclosing(stream) as batches,
            ):
                self._bound()
                async for batch in batches:
                    self._bound()
                    self.sink.connected()
                    quiet.disturb()
                    self.problem = self._shortage
                    await self._keep(number, resumption, batch.lines)
                    if batch.rest and is_over:
                        await self._keep(number, resumption, [batch.rest])
                    elif batch.rest:  # a whole line only if the container has ended, and then it comes again
                        self._half = number, batch.rest
        except TimeoutError:  # of the sink's, too
            if self._patience is None or not self._patience.expired():
                raise
            raise NotFoundError(f"pod {self.pod} is gone, and its log does not end") from None
        finally:
            self._patience = None
            quiet.end()

    def _bound(self) -> None:
        """Wait only so long for the next line of a pod that is gone."""
        if self._is_gone and self._patience is not None and not self._patience.expired():
            self._patience.reschedule(asyncio.get_running_loop().time() + LEFT_SECONDS)

    async def _keep(self, number: int, resumption: Resumption, lines: list[bytes]) -> None:
        """Give the sink what is new; raises _DoubtError if that may be another run's."""
        had_gap = resumption.gap
        new = resumption.feed(lines)
        if not new:
            return
        if self.sink.kept(number).end == 0 and self.sink.adopt(number, new[0]):
            raise _DoubtError
        has_gap = resumption.gap and not had_gap
        if has_gap:
            self._doubts += 1
            if self._doubts <= DOUBTS:
                raise _DoubtError
        self._doubts = self._failures = 0
        await self.sink.put(number, new, gap=has_gap)

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
