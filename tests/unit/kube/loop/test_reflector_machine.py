"""The reflector against a server that cuts, repeats, reorders, expires, falls silent and lies.

Whatever happened: when the server behaves again for a while, the store equals it, whoever followed the changes knows
the same, and on the way no older version ever replaced a newer one.
"""

from __future__ import annotations

import asyncio

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.unit.kube.loop.mirror import Mirror
from tests.unit.kube.loop.model_cluster import Behaviour, ModelCluster
from tests.unit.kube.loop.objects import THINGS, effort, seeded
from trainplane.kube.errors import (
    ForbiddenError,
    GoneError,
    ServerTimeoutError,
    TooManyRequestsError,
    TransportError,
    UnavailableError,
)
from trainplane.kube.reflector import Reflector, ReflectorSettings
from trainplane.kube.store import Store
from trainplane.kube.testing.clock import FakeClock

NAMES = st.sampled_from("abcdef")
FEW = st.integers(0, 6)
ERRORS = st.sampled_from(
    [
        GoneError("expired"),
        TransportError("reset"),
        UnavailableError("etcd is away"),
        ServerTimeoutError("slow"),
        ForbiddenError("no Role"),
        TooManyRequestsError("slow down", retry_after=7),
    ]
)
MISCHIEF = st.one_of(
    st.builds(Behaviour, error=ERRORS),
    st.builds(Behaviour, silent=st.just(True)),
    st.builds(
        Behaviour,
        cut_after=st.none() | FEW,
        copies=st.integers(1, 3),
        swap=st.booleans(),
        replay=FEW,
        late_bookmark=FEW,
        behind=FEW,
    ),
)


class ReflectorMachine(RuleBasedStateMachine):
    """Changes, mischief and time in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = FakeClock(settle_rounds=15)
        self.highest_observed = 0

    @initialize(streams=st.booleans(), names=st.sets(NAMES))
    def begin(self, streams: bool, names: set[str]) -> None:
        self.loop.run_until_complete(self._begin(streams, names))

    async def _begin(self, streams: bool, names: set[str]) -> None:
        self.cluster = ModelCluster(streams_lists=streams)
        for name in sorted(names):
            self.cluster.put(name)
        self.mirror = Mirror()
        self.store = Store(THINGS)
        # Never believes a stale list here: going back in time is tested by itself.
        never = ReflectorSettings(page_size=2, stale_lists=1_000_000)
        self.reflector = Reflector(
            self.cluster, THINGS, self.store, [self.mirror], self.clock, settings=never, random=seeded(3)
        )
        self.task = asyncio.create_task(self.reflector.run())
        await self.clock.settle()

    def teardown(self) -> None:
        if hasattr(self, "task"):
            self.loop.run_until_complete(self._end())
        self.loop.close()

    async def _end(self) -> None:
        await self._quiesce()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        assert self.cluster.watchers == 0
        assert self.clock.sleepers == 0

    def settle(self) -> None:
        self.loop.run_until_complete(self.clock.settle())

    @rule(name=NAMES, value=st.integers(0, 99))
    def put(self, name: str, value: int) -> None:
        self.cluster.put(name, value)
        self.settle()

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        self.cluster.delete(name)
        self.settle()

    @rule(changes=st.lists(st.tuples(NAMES, st.booleans()), min_size=2, max_size=8))
    def change_many_at_once(self, changes: list[tuple[str, bool]]) -> None:
        for name, exists in changes:
            if exists:
                self.cluster.put(name)
            else:
                self.cluster.delete(name)
        self.settle()

    @rule(name=NAMES)
    def make_again(self, name: str) -> None:
        self.cluster.delete(name)
        self.cluster.put(name)
        self.settle()

    @rule()
    def compact(self) -> None:
        self.cluster.compact()

    @rule()
    def bookmark(self) -> None:
        self.cluster.send_bookmarks()
        self.settle()

    @rule(mischief=st.lists(MISCHIEF, max_size=3))
    def cut(self, mischief: list[Behaviour]) -> None:
        self.cluster.behaviours += mischief
        self.cluster.cut_watches()
        self.settle()

    @rule(seconds=st.floats(0.1, 400))
    def pass_time(self, seconds: float) -> None:
        self.loop.run_until_complete(self.clock.advance(seconds))

    @rule()
    def quiesce(self) -> None:
        self.loop.run_until_complete(self._quiesce())

    async def _quiesce(self) -> None:
        self.cluster.behaviours.clear()
        await self.clock.advance(400)  # longer than any backoff and any silence
        truth = {key: msgspec.json.encode(obj) for key, obj in self.cluster.objects.items()}
        held = {key: self.store.get(key) for key in self.store}
        assert held == truth
        assert self.reflector.synced.is_set()
        assert self.mirror.of(self.store)

    @precondition(lambda self: hasattr(self, "store"))
    @invariant()
    def the_followers_know_what_the_store_holds(self) -> None:
        assert self.mirror.of(self.store)
        assert not self.task.done()

    @precondition(lambda self: hasattr(self, "store"))
    @invariant()
    def time_never_goes_back(self) -> None:
        assert self.store.observed >= self.highest_observed
        self.highest_observed = self.store.observed
        versions = [self.store.resource_version(key) or 0 for key in self.store]
        assert max(versions, default=0) <= self.cluster.revision


TestReflectorMachine = ReflectorMachine.TestCase
TestReflectorMachine.settings = effort(50, 30)
