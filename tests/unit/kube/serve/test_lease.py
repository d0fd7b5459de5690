"""The elector's loop on fake time: waiting, renewing, losing, giving back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.kube.serve.fake_client import FakeClient
from trainplane.kube.errors import ForbiddenError, TransportError, UnavailableError
from trainplane.kube.lease import LEASES, LeaderElector, LeadershipLostError, LeaseSettings, unique_identity
from trainplane.kube.manager import Manager
from trainplane.kube.testing.clock import FakeClock

SETTINGS = LeaseSettings("ns", "lock")

Faults = Callable[[str, str, str], object]


class Process:
    """An elector with its work, as a process would run them."""

    def __init__(self, client: FakeClient, clock: FakeClock, name: str, settings: LeaseSettings = SETTINGS) -> None:
        self.clock = clock
        self.lost: list[float] = []
        self.leaders: list[str] = []
        self.working = asyncio.Event()
        self.stopped_at: float | None = None
        self.finish = asyncio.Event()
        self.wind_down = 0.0
        self.elector = LeaderElector(
            client,
            settings,
            clock,
            identity=name,
            on_lost=lambda: self.lost.append(clock.monotonic()),
            on_new_leader=self.leaders.append,
            spread=lambda: 0.5,
        )
        self.task = asyncio.create_task(self.elector.run(self.work))

    async def work(self) -> None:
        self.working.set()
        try:
            await self.finish.wait()
        finally:
            if self.wind_down:
                await self.clock.sleep(self.wind_down)
            self.stopped_at = self.clock.monotonic()


def failing(error: Exception, *verbs: str) -> Faults:
    def fault(verb: str, plural: str, name: str) -> None:
        if verb in verbs:
            raise error

    return fault


def spec(client: FakeClient) -> dict[str, Any]:
    found: dict[str, Any] = client.peek(LEASES, "lock", "ns")["spec"]
    return found


async def cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.fixture
def client() -> FakeClient:
    return FakeClient()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def test_the_first_candidate_creates_the_lease_and_works(client: FakeClient, clock: FakeClock) -> None:
    one = Process(client, clock, "one")
    assert not one.elector.elected.is_set()
    await clock.advance(0)
    assert one.elector.is_leader()
    await one.elector.elected.wait()
    await one.working.wait()
    assert spec(client) == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }
    await cancelled(one.task)


async def test_a_leader_renews_without_reading(client: FakeClient, clock: FakeClock) -> None:
    one = Process(client, clock, "one")
    await clock.advance(60)
    assert one.elector.is_leader()
    assert client.calls["get"] == 1
    assert client.calls["replace"] == 27  # every 2.2 s
    await cancelled(one.task)


async def test_a_follower_waits_while_it_sees_renewals_and_takes_over_after(
    client: FakeClient, clock: FakeClock
) -> None:
    one, two = Process(client, clock, "one"), Process(client, clock, "two")
    await clock.advance(60)
    assert (one.elector.is_leader(), two.elector.is_leader()) == (True, False)
    assert two.leaders == ["one"]
    client.before = failing(TransportError("cable cut"), "replace")
    await clock.advance(10)
    with pytest.raises(LeadershipLostError, match="ns/lock"):
        await one.task
    client.before = None
    await clock.advance(20)
    assert two.elector.is_leader()
    assert two.elector.term == 1
    assert spec(client)["holderIdentity"] == "two"
    await cancelled(two.task)


async def test_a_clean_stop_gives_the_lease_back_after_the_work_has_stopped(
    client: FakeClient, clock: FakeClock
) -> None:
    one, two = Process(client, clock, "one"), Process(client, clock, "two")
    await clock.advance(5)
    one.wind_down = 30.0
    one.task.cancel()
    await clock.advance(29)
    assert one.elector.is_leader()
    assert not two.elector.is_leader()
    await clock.advance(1)
    with pytest.raises(asyncio.CancelledError):
        await one.task
    assert one.stopped_at == 35
    assert spec(client)["holderIdentity"] == ""
    await clock.advance(2.5)
    assert two.elector.is_leader()
    await cancelled(two.task)


async def test_work_that_ends_gives_the_lease_back(client: FakeClient, clock: FakeClock) -> None:
    one = Process(client, clock, "one")
    await clock.advance(5)
    one.finish.set()
    await one.task
    assert not one.elector.is_leader()
    assert spec(client)["holderIdentity"] == ""


async def test_the_works_own_failure_comes_out_as_it_is(client: FakeClient, clock: FakeClock) -> None:
    async def broken() -> None:
        raise ZeroDivisionError

    elector = LeaderElector(client, SETTINGS, clock)
    with pytest.raises(ZeroDivisionError):
        await elector.run(broken)
    assert spec(client)["holderIdentity"] == ""


async def test_release_can_be_switched_off(client: FakeClient, clock: FakeClock) -> None:
    one = Process(client, clock, "one", LeaseSettings("ns", "lock", release_on_stop=False))
    await clock.advance(1)
    await cancelled(one.task)
    assert spec(client)["holderIdentity"] == "one"
    assert not one.elector.is_leader()


async def test_a_release_that_fails_is_no_error(client: FakeClient, clock: FakeClock) -> None:
    one = Process(client, clock, "one")
    await clock.advance(1)
    client.before = failing(UnavailableError("going down"), "replace")
    one.finish.set()
    await one.task
    assert not one.elector.is_leader()


async def test_losing_stops_the_work_tells_and_raises(client: FakeClient, clock: FakeClock) -> None:
    one = Process(client, clock, "one")
    await clock.advance(1)
    client.before = failing(TransportError("cable cut"), "get", "replace")
    await clock.advance(8.9)
    assert one.elector.is_leader()
    await clock.advance(0.2)
    assert not one.elector.is_leader()
    assert one.lost == [10.0]
    assert one.stopped_at == 10.0
    with pytest.raises(LeadershipLostError) as caught:
        await one.task
    assert (caught.value.retryable, caught.value.whose) == (False, "cluster")


async def test_work_that_will_not_stop_does_not_hold_up_the_exit(client: FakeClient, clock: FakeClock) -> None:
    one = Process(client, clock, "one")
    await clock.advance(1)
    one.wind_down = 3600.0
    client.before = failing(TransportError("cable cut"), "get", "replace")
    await clock.advance(14)
    with pytest.raises(LeadershipLostError):
        await one.task
    assert one.stopped_at is None
    await clock.advance(3600)


async def test_a_leader_that_sees_another_holder_stops_at_once(client: FakeClient, clock: FakeClock) -> None:
    one = Process(client, clock, "one")
    await clock.advance(1)
    usurped = client.peek(LEASES, "lock", "ns")
    usurped["spec"]["holderIdentity"] = "somebody"
    client.put(LEASES, usurped)
    await clock.advance(4.4)  # a conflict at the first try, a read at the second
    with pytest.raises(LeadershipLostError, match="somebody"):
        await one.task


async def test_an_answer_that_got_lost_is_no_loss(client: FakeClient, clock: FakeClock) -> None:
    one = Process(client, clock, "one")
    await clock.advance(1)
    client.after = failing(TransportError("reset"), "replace")
    await clock.advance(1.3)
    client.after = None
    await clock.advance(30)
    assert one.elector.is_leader()
    await cancelled(one.task)


async def test_a_call_that_hangs_is_given_up_at_the_deadline(client: FakeClient, clock: FakeClock) -> None:
    class Hanging(FakeClient):
        hang = False

        async def replace(self, *args: Any, **kwargs: Any) -> Any:
            if self.hang:
                await asyncio.Event().wait()
            return await super().replace(*args, **kwargs)

    hanging = Hanging()
    one = Process(hanging, clock, "one")
    await clock.advance(1)
    hanging.hang = True
    await clock.advance(9)
    with pytest.raises(LeadershipLostError):
        await one.task
    assert one.lost == [10.0]


async def test_a_paused_process_does_not_lead_when_it_wakes(client: FakeClient, clock: FakeClock) -> None:
    one = Process(client, clock, "one")
    await clock.advance(1)
    clock._elapsed += 40  # the process stood still: time went on and nothing of it ran
    assert not one.elector.is_leader()
    await clock.advance(0)
    with pytest.raises(LeadershipLostError):
        await one.task
    assert spec(client)["holderIdentity"] == "one"


async def test_a_candidate_outlasts_errors_before_it_leads(client: FakeClient, clock: FakeClock) -> None:
    client.before = failing(ForbiddenError("no Role yet"), "get", "create")
    one = Process(client, clock, "one")
    await clock.advance(60)
    assert not one.elector.is_leader()
    client.before = None
    await clock.advance(3)
    assert one.elector.is_leader()
    await cancelled(one.task)


async def test_three_candidates_hand_over_two_hundred_times(client: FakeClient, clock: FakeClock) -> None:
    processes = [Process(client, clock, f"p{number}") for number in range(3)]
    reigns = 0
    for number in range(3, 203):
        await clock.advance(5)
        leading = [process for process in processes if process.elector.is_leader()]
        assert len(leading) == 1
        reigns += 1
        leader = leading[0]
        await cancelled(leader.task)
        processes[processes.index(leader)] = Process(client, clock, f"p{number}")
    assert reigns == 200
    assert spec(client)["leaseTransitions"] == 199
    for process in processes:
        await cancelled(process.task)


async def test_a_manager_can_wait_for_its_election(client: FakeClient, clock: FakeClock) -> None:
    manager = Manager([], [])
    elector = LeaderElector(client, SETTINGS, clock)
    managing = asyncio.create_task(manager.run(lead=elector.elected.wait))

    async def managed() -> None:
        await managing

    leading = asyncio.create_task(elector.run(managed))
    await clock.advance(30)
    assert elector.is_leader()
    manager.stop()
    await clock.advance(0)
    await leading
    assert spec(client)["holderIdentity"] == ""


def test_identities_differ_and_name_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "pod-1")
    first, second = unique_identity(), unique_identity()
    assert first != second
    assert first.startswith("pod-1_")


async def test_run_can_be_cancelled_before_it_ever_led(client: FakeClient, clock: FakeClock) -> None:
    one, two = Process(client, clock, "one"), Process(client, clock, "two")
    await clock.advance(3)
    await cancelled(two.task)
    assert not two.working.is_set()
    await cancelled(one.task)
