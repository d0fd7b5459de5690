"""Sources give keys, a queue orders them, workers reconcile them.

A reconcile gets a key and nothing else: it reads stores, decides, writes, and says how it went. It may be run again at
any time, and is, whenever something changes or something failed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from trainplane.kube.backoff import Backoff
from trainplane.kube.clock import SystemClock
from trainplane.kube.errors import ApiError
from trainplane.kube.observer import Unobserved
from trainplane.kube.pace import Pace
from trainplane.kube.queue import QueueClosed, WorkQueue

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from trainplane.kube.clock import Clock
    from trainplane.kube.observer import Observer
    from trainplane.kube.resource import Key
    from trainplane.kube.store import Change

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to do until something changes."""


@dataclass(frozen=True, slots=True)
class RequeueAfter:
    """All is well, and the key wants another look in so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Terminal:
    """It failed, and trying again changes nothing until the object does: no retry, but the error is reported."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Failed:
    """It failed, and is tried again as if it had raised, but after so many seconds at the latest: more is due then."""

    error: Exception
    within: float


Result = Done | RequeueAfter | Terminal | Failed
DONE = Done()


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """How a controller works its keys."""

    workers: int = 16
    """Keys worked on at once. They wait for the API server most of the time, so more than cores."""

    deadline_seconds: float = 60.0
    """Seconds after which a reconcile is cancelled and retried: a lost answer must not hold its key for ever."""

    drain_seconds: float = 10.0
    """Seconds that reconciles under way get at shutdown: well within the 30 that a pod is given."""

    backoff: Backoff = field(default_factory=Backoff)
    """Waits between failures of one key."""


def own_key(change: Change) -> Iterable[Key]:
    """Map a change to the key of the object that changed."""
    return (change.key,)


class Controller(Generic[K]):
    """Runs `reconcile` for each key that its sources name.

    What `reconcile` raises is retried with growing waits, after Retry-After if the error carries one, and handed to
    `on_error`, as is a Terminal's error. A key is never with two workers at once. `give_way` is waited for before each
    key: who shares the event loop and has somebody waiting goes first.
    """

    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Awaitable[Result]],
        clock: Clock | None = None,
        *,
        settings: ControllerSettings | None = None,
        observer: Observer | None = None,
        on_error: Callable[[K, Exception], None] | None = None,
        queue: WorkQueue[K] | None = None,
        give_way: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.name = name
        self._reconcile = reconcile
        self._clock = clock or SystemClock()
        self._settings = settings or ControllerSettings()
        self._observer = observer or Unobserved()
        self._on_error = on_error
        self._give_way = give_way
        self._pace = Pace()
        if queue is None:  # an empty one is false
            queue = WorkQueue(self._clock, backoff=self._settings.backoff)
        self.queue = queue

    def source(self, keys: Callable[[Change], Iterable[K]]) -> Callable[[Change], None]:
        """Return a handler for a reflector that queues the keys which `keys` maps a change to."""
        add = self.queue.add

        def handle(change: Change) -> None:
            for key in keys(change):
                add(key, backlog=change.initial)

        return handle

    async def run(self) -> None:
        """Work until `stop`, or until cancelled, which drops reconciles where they are."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._settings.workers):
                group.create_task(self._work(), name=f"{self.name}-{number}")

    async def stop(self) -> None:
        """Take no more keys, and return when the reconciles under way have ended or had `drain_seconds`."""
        self.queue.close(drain=False)
        try:
            async with self._clock.timeout(self._settings.drain_seconds):
                await self.queue.quiet()
        except TimeoutError:
            logger.warning(
                "reconciles cut off at shutdown",
                extra={"controller": self.name, "keys": [str(key) for key in self.queue.working]},
            )

    async def _work(self) -> None:
        while True:
            try:
                key, waited = await self.queue.get()
            except QueueClosed:
                return
            if self._give_way is not None:
                await self._give_way()
            self._observer.work_begun(self.name, waited=waited, depth=len(self.queue))
            began = self._clock.monotonic()
            try:
                outcome = await self._look_at(key)
            finally:
                self.queue.done(key)
            self._observer.work_ended(self.name, outcome=outcome, seconds=self._clock.monotonic() - began)
            if self._pace.is_due():
                await self._pace.rest()

    async def _look_at(self, key: K) -> str:
        """Reconcile a key and queue it again if it needs that; returns the outcome's name."""
        try:
            async with self._clock.timeout(self._settings.deadline_seconds):
                result = await self._reconcile(key)
        except Exception as error:  # noqa: BLE001 whatever a reconcile raises is that key's trouble alone
            return self._retry(key, error)
        if isinstance(result, Failed):
            self.queue.add_after(key, result.within)
            return self._retry(key, result.error)
        self.queue.forget(key)
        match result:
            case RequeueAfter(seconds):
                self.queue.add_after(key, seconds)
                return "requeued"
            case Terminal(reason):
                self._report(key, reason, "reconcile failed for good", retry_seconds=None)
                return "terminal"
            case Done():
                return "done"

    def _retry(self, key: K, error: Exception) -> str:
        at_least = (error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0
        wait = self.queue.add_after_failure(key, at_least=at_least)
        self._report(key, error, "reconcile failed", retry_seconds=round(wait, 3))
        return "overdue" if isinstance(error, TimeoutError) else "failed"

    def _report(self, key: K, error: Exception, message: str, *, retry_seconds: float | None) -> None:
        extra = {"controller": self.name, "key": str(key), "retry_seconds": retry_seconds}
        logger.warning(message, exc_info=error, extra=extra)
        if self._on_error is None:
            return
        try:
            self._on_error(key, error)
        except Exception:
            logger.exception("error hook failed", extra=extra)
