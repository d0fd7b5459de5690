"""The queue against a model: what was asked for is worked, once at a time, and no promise is forgotten."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.unit.kube.loop.objects import effort, seeded
from trainplane.kube.backoff import Backoff
from trainplane.kube.queue import BACKLOG_TURN, WorkQueue
from trainplane.kube.testing.clock import FakeClock

KEYS = st.sampled_from("abcde")


class QueueMachine(RuleBasedStateMachine):
    """Workers, time and sources in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = FakeClock(settle_rounds=5)
        self.queue: WorkQueue[str] = WorkQueue(self.clock, backoff=Backoff(base=1, cap=60), random=seeded(1))
        self.news: set[str] = set()
        self.backlog: set[str] = set()
        self.working: set[str] = set()
        self.again: dict[str, bool] = {}
        self.due: dict[str, float] = {}
        self.passed_over = 0
        self.cancelled: list[asyncio.Task[tuple[str, float]]] = []

    def teardown(self) -> None:
        self.loop.run_until_complete(self._close())
        self.loop.close()

    async def _close(self) -> None:
        self.queue.close(drain=False)
        await self.clock.settle()

    def run(self, step: object) -> None:
        async def act() -> None:
            if callable(step):
                step()
            await self.clock.settle()

        self.loop.run_until_complete(act())

    def model_add(self, key: str, *, backlog: bool) -> None:
        if key in self.working:
            self.again[key] = backlog and self.again.get(key, True)
        elif not backlog:
            self.backlog.discard(key)
            self.news.add(key)
        elif key not in self.news:
            self.backlog.add(key)

    @rule(key=KEYS, backlog=st.booleans())
    def add(self, key: str, backlog: bool) -> None:
        self.run(lambda: self.queue.add(key, backlog=backlog))
        self.model_add(key, backlog=backlog)

    @rule(key=KEYS, seconds=st.integers(1, 50))
    def add_after(self, key: str, seconds: int) -> None:
        self.run(lambda: self.queue.add_after(key, seconds))
        at = self.clock.monotonic() + seconds
        self.due[key] = min(at, self.due.get(key, at))

    @rule(key=KEYS)
    def fail(self, key: str) -> None:
        waits: list[float] = []
        self.run(lambda: waits.append(self.queue.add_after_failure(key)))
        at = self.clock.monotonic() + waits[0]
        self.due[key] = min(at, self.due.get(key, at))

    @rule(key=KEYS)
    def forget(self, key: str) -> None:
        self.queue.forget(key)
        assert self.queue.failures(key) == 0

    @rule(seconds=st.integers(0, 40))
    def pass_time(self, seconds: int) -> None:
        self.loop.run_until_complete(self.clock.advance(seconds))
        now = self.clock.monotonic()
        for key, at in sorted(self.due.items(), key=lambda item: item[1]):
            if at <= now:
                del self.due[key]
                self.model_add(key, backlog=False)

    @precondition(lambda self: self.news or self.backlog)
    @rule()
    def take(self) -> None:
        key, waited = self.loop.run_until_complete(asyncio.wait_for(self.queue.get(), 60))
        assert key not in self.working, "a key is worked by one worker at a time"
        assert key in self.news | self.backlog
        assert waited >= 0
        if self.news and key in self.backlog:
            assert self.queue._turn % BACKLOG_TURN == 0, "the backlog overtakes news only in its turn"
        self.passed_over = 0 if key in self.backlog else self.passed_over + 1
        if not self.backlog:
            self.passed_over = 0
        assert self.passed_over < BACKLOG_TURN, "news does not keep the backlog waiting for ever"
        self.news.discard(key)
        self.backlog.discard(key)
        self.working.add(key)

    @precondition(lambda self: not self.news and not self.backlog)
    @rule()
    def a_worker_gives_up_waiting(self) -> None:
        async def give_up() -> None:
            worker = asyncio.create_task(self.queue.get())
            await self.clock.settle()
            assert not worker.done()
            worker.cancel()
            with suppress(asyncio.CancelledError):
                await worker

        self.loop.run_until_complete(give_up())

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.working)))
        self.run(lambda: self.queue.done(key))
        self.working.discard(key)
        if key in self.again:
            self.model_add(key, backlog=self.again.pop(key))

    @invariant()
    def agrees_with_the_model(self) -> None:
        assert len(self.queue) == len(self.news) + len(self.backlog)
        assert set(self.queue._news_since) == self.news
        assert set(self.queue._backlog_since) == self.backlog
        assert self.queue.working == self.working
        assert self.queue.delayed == len(self.due), "no delayed key is lost, none is doubled"
        assert self.queue._due == self.due


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = effort(50, 30)
