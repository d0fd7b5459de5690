"""The work queue: which keys need a look, and who may look now.

A key is in the queue at most once, and with at most one worker at a time; what arrives while it is being worked on
makes it due again afterwards. Nothing says what happened to a key, only that something did: workers read the store.

Two lanes. News goes first, but one turn in `BACKLOG_TURN` belongs to the backlog (what an initial list brought), so a
restart with 100,000 objects delays no fresh change behind them, and a steady stream of changes does not keep the
backlog waiting for ever.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Hashable
from random import Random
from typing import TYPE_CHECKING, Generic, TypeVar

from trainplane.kube.backoff import Backoff

if TYPE_CHECKING:
    from trainplane.kube.clock import Clock

K = TypeVar("K", bound=Hashable)

BACKLOG_TURN = 8
"""Every Nth key comes from the backlog while both lanes have keys: an eighth of the capacity is its own."""


class QueueClosed(Exception):  # noqa: N818 an end, like StopIteration, and no error
    """Nothing more will come: the worker may go home."""


class WorkQueue(Generic[K]):
    """Keys that wait for a worker, now or at some time. For one event loop, like everything here."""

    def __init__(self, clock: Clock, *, backoff: Backoff | None = None, random: Random | None = None) -> None:
        self._clock = clock
        self._backoff = backoff or Backoff()
        self._random = random or Random()  # noqa: S311 jitter is no secret
        self._news: deque[K] = deque()
        self._backlog: deque[K] = deque()
        # Since when a key waits, by lane. These are the truth; a key in a deque but not here was moved or handed out.
        self._news_since: dict[K, float] = {}
        self._backlog_since: dict[K, float] = {}
        self._working: set[K] = set()
        self._again: dict[K, bool] = {}
        self._failures: dict[K, int] = {}
        self._turn = 0
        self._due: dict[K, float] = {}
        self._timetable: list[tuple[float, int, K]] = []
        self._serial = itertools.count()
        self._alarm: asyncio.Task[None] | None = None
        self._alarm_at = 0.0
        self._idle_workers: deque[asyncio.Future[None]] = deque()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._closed = False

    def __len__(self) -> int:
        """How many keys could be handed out now."""
        return len(self._news_since) + len(self._backlog_since)

    @property
    def delayed(self) -> int:
        """How many keys wait for their time."""
        return len(self._due)

    @property
    def pending(self) -> int:
        """How many keys wait or are being worked on."""
        return len(self) + len(self._working)

    @property
    def working(self) -> frozenset[K]:
        """The keys that workers hold."""
        return frozenset(self._working)

    def failures(self, key: K) -> int:
        """How often in a row `add_after_failure` was called for the key."""
        return self._failures.get(key, 0)

    def add(self, key: K, *, backlog: bool = False) -> None:
        """Enqueue a key.

        `backlog` marks the work of an initial list; news of the same key outranks it.
        """
        if self._closed:
            return
        if key in self._working:
            self._again[key] = backlog and self._again.get(key, True)
            return
        if key in self._news_since:
            return
        if backlog:
            if key not in self._backlog_since:
                self._backlog_since[key] = self._clock.monotonic()
                self._backlog.append(key)
                self._wake_one()
            return
        since = self._backlog_since.pop(key, None)
        self._news_since[key] = self._clock.monotonic() if since is None else since
        self._news.append(key)
        self._wake_one()

    def add_after(self, key: K, seconds: float) -> None:
        """Enqueue a key in so many seconds; of several such times the earliest holds."""
        if self._closed:
            return
        if seconds <= 0:
            self.add(key)
            return
        at = self._clock.monotonic() + seconds
        if key in self._due and self._due[key] <= at:
            return
        self._due[key] = at
        heapq.heappush(self._timetable, (at, next(self._serial), key))
        self._set_alarm()

    def add_after_failure(self, key: K, *, at_least: float = 0.0) -> float:
        """Return that a look failed and is to be repeated, each time later; returns the seconds until then."""
        self._failures[key] = self._failures.get(key, 0) + 1
        seconds = max(at_least, self._backoff.delay(self._failures[key], self._random))
        self.add_after(key, seconds)
        return seconds

    def forget(self, key: K) -> None:
        """Begin the count of failures anew, because a look succeeded."""
        self._failures.pop(key, None)

    async def get(self) -> tuple[K, float]:
        """Wait for a key; returns it and the seconds it waited. `done` must follow. Raises QueueClosed at the end."""
        while not len(self):
            if self._closed:
                raise QueueClosed
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle_workers.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                self._pass_on(waiter)
                raise
        key, since = self._take()
        self._working.add(key)
        self._quiet.clear()
        return key, max(0.0, self._clock.monotonic() - since)

    def done(self, key: K) -> None:
        """Give a key back; if it was added meanwhile, it waits again."""
        self._working.remove(key)
        backlog = self._again.pop(key, None)
        if backlog is not None:
            self.add(key, backlog=backlog)
        self._note_quiet()

    def close(self, *, drain: bool = True) -> None:
        """Take no more keys and drop the delayed; without `drain`, drop those that wait, too.

        Keys added while a worker holds them are dropped with the delayed: what runs after us finds them in its list.
        """
        self._closed = True
        self._due.clear()
        self._timetable.clear()
        self._again.clear()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if not drain:
            for lane in (self._news, self._backlog, self._news_since, self._backlog_since):
                lane.clear()
        while self._idle_workers:
            waiter = self._idle_workers.popleft()
            if not waiter.done():
                waiter.set_result(None)
        self._note_quiet()

    async def quiet(self) -> None:
        """Wait until no key waits (the delayed aside) and no worker holds one."""
        self._note_quiet()
        await self._quiet.wait()

    def _take(self) -> tuple[K, float]:
        self._turn += 1
        backlog_first = not self._news_since or (self._turn % BACKLOG_TURN == 0 and self._backlog_since)
        lane, since = (self._backlog, self._backlog_since) if backlog_first else (self._news, self._news_since)
        while True:
            key = lane.popleft()
            if key in since:
                return key, since.pop(key)

    def _wake_one(self) -> None:
        self._quiet.clear()
        while self._idle_workers:
            waiter = self._idle_workers.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _pass_on(self, waiter: asyncio.Future[None]) -> None:
        """Wake another worker if one was cancelled just after it was woken for a key."""
        if not waiter.cancelled() and len(self):
            self._wake_one()
        elif waiter in self._idle_workers:
            self._idle_workers.remove(waiter)

    def _note_quiet(self) -> None:
        if len(self) or self._working:
            self._quiet.clear()
        else:
            self._quiet.set()

    def _set_alarm(self) -> None:
        """See that one task sleeps until the earliest time in the table."""
        if self._closed or not self._timetable:
            return
        at = self._timetable[0][0]
        if self._alarm is not None:
            if self._alarm_at <= at:
                return
            self._alarm.cancel()
        self._alarm_at = at
        self._alarm = asyncio.get_running_loop().create_task(self._sleep_until(at), name="work-queue-alarm")

    async def _sleep_until(self, at: float) -> None:
        await self._clock.sleep(at - self._clock.monotonic())
        self._alarm = None
        now = self._clock.monotonic()
        while self._timetable and self._timetable[0][0] <= now:
            at, _, key = heapq.heappop(self._timetable)
            if self._due.get(key) == at:
                del self._due[key]
                self.add(key)
        self._set_alarm()
