# A double has the signature of what it stands for.
# ruff: noqa: ARG002
from __future__ import annotations

import asyncio
import itertools
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.unit.kube.loop.objects import THINGS, thing
from trainplane.kube import pace
from trainplane.kube.backoff import Backoff
from trainplane.kube.controller import (
    DONE,
    Controller,
    ControllerSettings,
    Failed,
    RequeueAfter,
    Result,
    Terminal,
    own_key,
)
from trainplane.kube.errors import TooManyRequestsError
from trainplane.kube.observer import Unobserved
from trainplane.kube.queue import WorkQueue
from trainplane.kube.store import Store
from trainplane.kube.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest

    from trainplane.kube.resource import Key


class Work(Unobserved):
    def __init__(self) -> None:
        self.begun: list[tuple[float, int]] = []
        self.ended: list[tuple[str, float]] = []

    def work_begun(self, controller: str, *, waited: float, depth: int) -> None:
        self.begun.append((waited, depth))

    def work_ended(self, controller: str, *, outcome: str, seconds: float) -> None:
        self.ended.append((outcome, seconds))


class Scene:
    """A controller whose reconcile does what a test put into `script`, then succeeds."""

    def __init__(self, *script: Any, workers: int = 2, deadline: float = 60.0) -> None:
        self.clock = FakeClock()
        self.script = list(script)
        self.seen: list[tuple[str, float]] = []
        self.at_once: dict[str, int] = {}
        self.errors: list[tuple[str, str]] = []
        self.observer = Work()
        self.controller: Controller[str] = Controller(
            "test",
            self.reconcile,
            self.clock,
            settings=ControllerSettings(
                workers=workers,
                deadline_seconds=deadline,
                drain_seconds=5,
                backoff=Backoff(base=1, cap=100, jitter=0),
            ),
            observer=self.observer,
            on_error=lambda key, error: self.errors.append((key, repr(error))),
        )
        self.task: asyncio.Task[None] | None = None

    async def reconcile(self, key: str) -> Result:
        self.at_once[key] = self.at_once.get(key, 0) + 1
        assert self.at_once[key] == 1, "one worker at a time"
        try:
            self.seen.append((key, self.clock.monotonic()))
            step = self.script.pop(0) if self.script else DONE
            if callable(step):
                step = await step()
            if isinstance(step, Exception):
                raise step
            result: Result = step
            return result
        finally:
            self.at_once[key] -= 1

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Scene]:
        self.task = asyncio.create_task(self.controller.run())
        await self.clock.settle()
        yield self
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def add(self, *keys: str) -> None:
        for key in keys:
            self.controller.queue.add(key)
        await self.clock.settle()


async def forever() -> Result:
    await asyncio.Event().wait()
    return DONE


async def test_each_key_is_reconciled() -> None:
    async with Scene().running() as scene:
        await scene.add("a", "b", "a")
        assert [key for key, _ in scene.seen] == ["a", "b"]
        assert [outcome for outcome, _ in scene.observer.ended] == ["done", "done"]
        assert scene.observer.begun == [(0.0, 1), (0.0, 0)]


async def test_a_key_can_ask_for_another_look() -> None:
    async with Scene(RequeueAfter(30)).running() as scene:
        await scene.add("a")
        await scene.clock.advance(29)
        assert len(scene.seen) == 1
        await scene.clock.advance(2)
        assert scene.seen == [("a", 0.0), ("a", 30.0)]
        assert [outcome for outcome, _ in scene.observer.ended] == ["requeued", "done"]


async def test_an_error_is_retried_with_growing_waits_until_it_succeeds() -> None:
    bugs = [ValueError("one"), ValueError("two"), ValueError("three")]
    async with Scene(*bugs).running() as scene:
        await scene.add("a")
        await scene.clock.advance(100)
        assert [moment for _, moment in scene.seen] == [0, 1, 3, 7]
        assert scene.errors == [("a", f"ValueError('{word}')") for word in ("one", "two", "three")]
        assert [outcome for outcome, _ in scene.observer.ended] == ["failed"] * 3 + ["done"]
        assert scene.controller.queue.failures("a") == 0, "success begins the count anew"


async def test_retry_after_is_obeyed() -> None:
    async with Scene(TooManyRequestsError("slow", retry_after=20)).running() as scene:
        await scene.add("a")
        await scene.clock.advance(19)
        assert len(scene.seen) == 1
        await scene.clock.advance(2)
        assert len(scene.seen) == 2


async def test_a_failure_does_not_drop_what_else_is_due() -> None:
    async with Scene(*[Failed(ValueError("no"), within=10 - at) for at in (0, 1, 3, 7)]).running() as scene:
        await scene.add("a")
        await scene.clock.advance(100)
        assert [moment for _, moment in scene.seen] == [0, 1, 3, 7, 10], "the fourth wait would have been 8 seconds"
        assert [outcome for outcome, _ in scene.observer.ended] == ["failed"] * 4 + ["done"]
        assert len(scene.errors) == 4
        assert scene.controller.queue.failures("a") == 0


async def test_a_terminal_error_is_reported_and_not_retried(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with Scene(Terminal(ValueError("spec.x is wrong"))).running() as scene:
            await scene.add("a")
            await scene.clock.advance(10_000)
            assert len(scene.seen) == 1
            assert scene.errors == [("a", "ValueError('spec.x is wrong')")]
            assert [outcome for outcome, _ in scene.observer.ended] == ["terminal"]
            await scene.add("a")
            assert len(scene.seen) == 2, "a change of the object is a new chance"
    assert [record.getMessage() for record in caplog.records] == ["reconcile failed for good"]


async def test_a_reconcile_past_its_deadline_is_cancelled_and_retried() -> None:
    async with Scene(forever, deadline=10).running() as scene:
        await scene.add("a")
        await scene.clock.advance(9)
        assert scene.controller.queue.working == {"a"}
        await scene.clock.advance(1.5)
        assert scene.controller.queue.working == frozenset()
        await scene.clock.advance(10)
        assert scene.seen == [("a", 0.0), ("a", 11.0)]
        assert scene.observer.ended == [("overdue", 10.0), ("done", 0.0)]


async def test_a_slow_key_does_not_hold_up_others() -> None:
    async with Scene(forever, workers=2).running() as scene:
        await scene.add("slow", "b", "c")
        assert [key for key, _ in scene.seen] == ["slow", "b", "c"]


async def test_a_key_is_never_with_two_workers() -> None:
    async def slowly() -> Result:
        await scene.clock.sleep(1)
        return DONE

    async with Scene(*[slowly] * 40, workers=8).running() as scene:
        for number in range(40):
            scene.controller.queue.add("abc"[number % 3])
            await scene.clock.advance(0.1)
        await scene.clock.advance(10)
        assert {key for key, _ in scene.seen} == set("abc")
        assert scene.controller.queue.working == frozenset()
        # The assertion within `reconcile` would have been reported as an error.
        assert scene.errors == []


async def test_an_error_hook_that_raises_does_not_stop_the_work(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(ValueError("x"))

    def broken(key: str, error: Exception) -> None:
        raise RuntimeError("hook")

    scene.controller._on_error = broken
    with caplog.at_level(logging.ERROR):
        async with scene.running():
            await scene.add("a")
            await scene.clock.advance(2)
            assert len(scene.seen) == 2
    assert [record.getMessage() for record in caplog.records] == ["error hook failed"]


async def test_stopping_waits_for_reconciles_under_way_and_drops_the_rest() -> None:
    async def slowly() -> Result:
        await scene.clock.sleep(3)
        return DONE

    async with Scene(slowly, workers=1).running() as scene:
        await scene.add("a", "b")
        stopping = asyncio.create_task(scene.controller.stop())
        await scene.clock.advance(2)
        assert not stopping.done()
        await scene.clock.advance(2)
        await asyncio.wait_for(stopping, 60)
        assert scene.task is not None
        await asyncio.wait_for(scene.task, 60)
        assert [key for key, _ in scene.seen] == ["a"]


async def test_stopping_does_not_wait_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    async with Scene(forever).running() as scene:
        await scene.add("a")
        stopping = asyncio.create_task(scene.controller.stop())
        await scene.clock.advance(6)
        await asyncio.wait_for(stopping, 60)
    record = caplog.records[-1]
    assert record.getMessage() == "reconciles cut off at shutdown"
    assert record.__dict__["keys"] == ["a"]


async def test_a_source_maps_changes_to_keys_and_initial_ones_to_the_backlog() -> None:
    async def reconcile(key: Key) -> Result:
        return DONE

    controller: Controller[Key] = Controller("test", reconcile, FakeClock())
    handle = controller.source(own_key)
    store = Store(THINGS)
    for change in store.put(store.read(thing("old", 1)), initial=True):
        handle(change)
    for change in store.put(store.read(thing("new", 2))):
        handle(change)
    assert [(await controller.queue.get())[0].name for _ in range(2)] == ["new", "old"]


async def test_no_op_reconciles_let_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(pace, "perf_counter", lambda: next(ticks) * 0.001)  # a millisecond of work per key
    scene = Scene(workers=4)
    for number in range(500):
        scene.controller.queue.add(str(number))
    task = asyncio.create_task(scene.controller.run())
    turns = 0
    while len(scene.seen) < 500:
        turns += 1
        await asyncio.sleep(0)
    assert turns > 50
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_queue_that_is_brought_is_used_though_it_is_empty() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock)

    async def reconcile(key: str) -> Result:
        raise AssertionError(key)

    assert Controller("test", reconcile, clock, queue=queue).queue is queue
