"""Events: what is written, how repeats become counts, and what happens when there are too many."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.unit.kube.serve.fake_client import FakeClient
from trainplane.kube.errors import ForbiddenError, InternalServerError, KubeError, TransportError, UnavailableError
from trainplane.kube.events import MESSAGE_LIMIT, EventRecorder, EventSettings, ObjectReference, cut
from trainplane.kube.resource import EVENTS
from trainplane.kube.testing.clock import START, FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

JOB = ObjectReference("trainer.example/v1", "TrainJob", "mnist", "team", "uid-1")
NODE = ObjectReference("example/v1", "ClusterThing", "shared", uid="uid-2")


@pytest.fixture
def client() -> FakeClient:
    return FakeClient()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def recorder(client: FakeClient, clock: FakeClock, **settings: Any) -> EventRecorder:
    return EventRecorder(client, clock, "job-controller", "pod-1", EventSettings(**settings))


@asynccontextmanager
async def running(events: EventRecorder) -> AsyncIterator[None]:
    task = asyncio.create_task(events.run())
    try:
        yield
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def failing(error: KubeError, verb: str, times: int) -> Callable[[str, str, str], None]:
    left = times

    def fault(called: str, plural: str, name: str) -> None:
        nonlocal left
        if called == verb and left:
            left -= 1
            raise error

    return fault


async def test_an_event_has_what_kubectl_and_the_sdk_look_for(client: FakeClient, clock: FakeClock) -> None:
    events = recorder(client, clock)
    async with running(events):
        events.record(JOB, "Warning", "CreationFailed", "JobSet refused", action="Reconciling")
        await events.drain()
    [event] = client.every(EVENTS)
    metadata = event.pop("metadata")
    assert metadata["namespace"] == "team"
    assert metadata["name"].startswith("mnist.")
    assert event == {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {
            "apiVersion": "trainer.example/v1",
            "kind": "TrainJob",
            "name": "mnist",
            "namespace": "team",
            "uid": "uid-1",
        },
        "type": "Warning",
        "reason": "CreationFailed",
        "message": "JobSet refused",
        "action": "Reconciling",
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
        "source": {"component": "job-controller"},
        "reportingComponent": "job-controller",
        "reportingInstance": "pod-1",
    }


async def test_a_cluster_scoped_object_has_its_events_in_default(client: FakeClient, clock: FakeClock) -> None:
    events = recorder(client, clock)
    async with running(events):
        events.record(NODE, "Normal", "Seen", "hello")
        await events.drain()
    [event] = client.every(EVENTS)
    assert event["metadata"]["namespace"] == "default"
    assert "namespace" not in event["involvedObject"]
    assert "action" not in event


async def test_repeats_become_a_count_by_patch(client: FakeClient, clock: FakeClock) -> None:
    events = recorder(client, clock)
    async with running(events):
        for _ in range(3):
            events.record(JOB, "Normal", "Waiting", "for quota")
            await clock.advance(60)
    [event] = client.every(EVENTS)
    assert event["count"] == 3
    assert event["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert event["lastTimestamp"] == "2026-01-01T00:02:00Z"
    assert (client.calls["create"], client.calls["patch"]) == (1, 2)


async def test_repeats_before_the_first_write_cost_one_write(client: FakeClient, clock: FakeClock) -> None:
    events = recorder(client, clock)
    for _ in range(10):
        events.record(JOB, "Normal", "Waiting", "for quota")
    async with running(events):
        await events.drain()
    [event] = client.every(EVENTS)
    assert event["count"] == 10
    assert sum(client.calls.values()) == 1


async def test_a_repeat_during_a_write_is_written_after_it(client: FakeClient, clock: FakeClock) -> None:
    events = recorder(client, clock)

    def repeat(verb: str, plural: str, name: str) -> None:
        if verb == "create":
            events.record(JOB, "Normal", "Waiting", "for quota")

    client.after = repeat
    async with running(events):
        events.record(JOB, "Normal", "Waiting", "for quota")
        await events.drain()
    [event] = client.every(EVENTS)
    assert event["count"] == 2
    assert (client.calls["create"], client.calls["patch"]) == (1, 1)


@pytest.mark.parametrize(
    "other",
    [
        (JOB, "Warning", "Waiting", "for quota"),
        (JOB, "Normal", "Other", "for quota"),
        (JOB, "Normal", "Waiting", "for nodes"),
        (ObjectReference("trainer.example/v1", "TrainJob", "mnist", "team", "new"), "Normal", "Waiting", "for quota"),
    ],
)
async def test_what_differs_is_an_event_of_its_own(
    client: FakeClient, clock: FakeClock, other: tuple[Any, ...]
) -> None:
    events = recorder(client, clock)
    async with running(events):
        events.record(JOB, "Normal", "Waiting", "for quota")
        events.record(*other)
        await events.drain()
    assert [event["count"] for event in client.every(EVENTS)] == [1, 1]


async def test_old_news_begins_anew(client: FakeClient, clock: FakeClock) -> None:
    events = recorder(client, clock)
    async with running(events):
        events.record(JOB, "Normal", "Waiting", "for quota")
        await clock.advance(600)
        events.record(JOB, "Normal", "Waiting", "for quota")
        await events.drain()
    first, second = client.every(EVENTS)
    assert (first["count"], second["count"]) == (1, 1)
    assert second["firstTimestamp"] == "2026-01-01T00:10:00Z"


async def test_an_event_that_the_server_forgot_is_told_again_with_its_count(
    client: FakeClient, clock: FakeClock
) -> None:
    events = recorder(client, clock)
    async with running(events):
        events.record(JOB, "Normal", "Waiting", "for quota")
        await events.drain()
        client.objects.clear()
        events.record(JOB, "Normal", "Waiting", "for quota")
        await events.drain()
    [event] = client.every(EVENTS)
    assert event["count"] == 2
    assert event["firstTimestamp"] == "2026-01-01T00:00:00Z"


async def test_one_object_cannot_flood_and_its_repeats_are_not_lost(client: FakeClient, clock: FakeClock) -> None:
    events = recorder(client, clock, burst=5, refill_seconds=300.0, forget_seconds=10_000.0)
    async with running(events):
        for _ in range(50):
            events.record(JOB, "Warning", "Crash", "again")
            await events.drain()
        assert client.calls["create"] + client.calls["patch"] == 5
        assert client.every(EVENTS)[0]["count"] == 5
        events.record(NODE, "Normal", "Other", "objects are not held up")
        await clock.advance(300)
        events.record(JOB, "Warning", "Crash", "again")
        await events.drain()
    counts = {event["reason"]: event["count"] for event in client.every(EVENTS)}
    assert counts == {"Crash": 51, "Other": 1}
    assert events.dropped == 0


async def test_new_news_over_the_limit_is_dropped_and_counted(client: FakeClient, clock: FakeClock) -> None:
    events = recorder(client, clock, burst=5)
    async with running(events):
        for number in range(8):
            events.record(JOB, "Normal", "Step", f"number {number}")
        await events.drain()
    assert len(client.every(EVENTS)) == 5
    assert events.dropped == 3


async def test_recording_never_waits_and_memory_is_bounded(client: FakeClient, clock: FakeClock) -> None:
    events = recorder(client, clock, waiting=10, remembered=20)
    for number in range(1000):  # nobody writes yet
        events.record(ObjectReference("v1", "Pod", f"p{number}", "team"), "Normal", "Seen", "hello")
    assert events.dropped == 990
    assert (len(events._notes), len(events._budgets), events._queue.qsize()) == (10, 20, 10)
    async with running(events):
        await events.drain()
        for number in range(1000):
            events.record(ObjectReference("v1", "Pod", f"q{number}", "team"), "Normal", "Seen", "hello")
            await events.drain()
    assert len(events._notes) == 20
    assert len(client.every(EVENTS)) == 1010


async def test_a_repeat_with_a_full_queue_goes_out_with_the_next(client: FakeClient, clock: FakeClock) -> None:
    events = recorder(client, clock, waiting=1)
    async with running(events):
        events.record(JOB, "Normal", "Waiting", "for quota")
        await events.drain()
    events.record(NODE, "Normal", "Filler", "takes the only place")
    events.record(JOB, "Normal", "Waiting", "for quota")
    async with running(events):
        await events.drain()
        events.record(JOB, "Normal", "Waiting", "for quota")
        await events.drain()
    assert {event["reason"]: event["count"] for event in client.every(EVENTS)} == {"Waiting": 3, "Filler": 1}
    assert events.dropped == 0


async def test_a_passing_fault_is_outlasted(client: FakeClient, clock: FakeClock) -> None:
    client.before = failing(UnavailableError("busy"), "create", times=3)
    events = recorder(client, clock)
    async with running(events):
        events.record(JOB, "Normal", "Seen", "hello")
        await clock.advance(6.9)  # tries at 0, 1, 3 and 7 seconds
        assert client.every(EVENTS) == []
        await clock.advance(0.1)
        assert len(client.every(EVENTS)) == 1
    assert events.dropped == 0


async def test_a_lost_answer_makes_no_second_event(client: FakeClient, clock: FakeClock) -> None:
    client.after = failing(TransportError("reset"), "create", times=1)
    events = recorder(client, clock)
    async with running(events):
        events.record(JOB, "Normal", "Seen", "hello")
        await clock.settle()
        events.record(JOB, "Normal", "Seen", "hello")
        await clock.advance(1)
        await events.drain()
    [event] = client.every(EVENTS)
    assert event["count"] == 2


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (ForbiddenError("namespace is terminating"), 1),
        (InternalServerError("failed calling webhook"), 5),
        (TransportError("down"), 21),
    ],
)
async def test_what_cannot_be_written_is_dropped_and_the_rest_goes_on(
    client: FakeClient, clock: FakeClock, error: KubeError, tries: int
) -> None:
    client.before = failing(error, "create", times=tries)
    events = recorder(client, clock, writers=1)
    async with running(events):
        events.record(JOB, "Normal", "Seen", "hello")
        events.record(NODE, "Normal", "Seen", "hello")
        await clock.advance(200)
    assert events.dropped == 1
    assert [event["involvedObject"]["kind"] for event in client.every(EVENTS)] == ["ClusterThing"]
    assert client.calls["create"] == tries + 1


async def test_an_api_server_that_is_away_for_two_minutes_costs_no_news(client: FakeClient, clock: FakeClock) -> None:
    client.before = failing(TransportError("down"), "create", times=100)
    events = recorder(client, clock, writers=1)
    async with running(events):
        events.record(JOB, "Normal", "Seen", "hello")
        await clock.advance(120)
        client.before = None
        await clock.advance(10)
    assert [event["reason"] for event in client.every(EVENTS)] == ["Seen"]
    assert events.dropped == 0


async def test_even_a_bug_does_not_end_the_writers(client: FakeClient, clock: FakeClock) -> None:
    def bug(verb: str, plural: str, name: str) -> None:
        client.before = None
        raise ZeroDivisionError

    client.before = bug
    events = recorder(client, clock)
    async with running(events):
        events.record(JOB, "Normal", "Seen", "hello")
        await events.drain()
        events.record(JOB, "Normal", "Seen", "hello")
        await events.drain()
    assert events.dropped == 1
    assert client.every(EVENTS)[0]["count"] == 2


async def test_one_slow_write_does_not_hold_up_others(clock: FakeClock) -> None:
    class Slow(FakeClient):
        async def create(self, resource: Any, obj: Any, namespace: str | None = None) -> Any:
            if obj["involvedObject"]["name"] == "mnist":
                await clock.sleep(100)
            return await super().create(resource, obj, namespace)

    slow = Slow()
    events = recorder(slow, clock)
    async with running(events):
        events.record(JOB, "Normal", "Seen", "hello")
        events.record(NODE, "Normal", "Seen", "hello")
        await clock.advance(1)
        assert [event["involvedObject"]["name"] for event in slow.every(EVENTS)] == ["shared"]
        await clock.advance(100)


def test_a_reference_is_read_off_an_object() -> None:
    tree = {"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "n", "namespace": "ns", "uid": "u"}}
    assert ObjectReference.of(tree) == ObjectReference("a/v1", "K", "n", "ns", "u")
    bare = {"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "n"}}
    assert ObjectReference.of(bare).tree() == {"apiVersion": "a/v1", "kind": "K", "name": "n"}


async def test_any_object_name_gives_a_legal_event_name(client: FakeClient, clock: FakeClock) -> None:
    events = recorder(client, clock)
    async with running(events):
        for name in ("a" * 253, "system:Node:X", ":::"):
            events.record(ObjectReference("v1", "X", name), "Normal", "Seen", "hello")
        await events.drain()
    names = [event["metadata"]["name"] for event in client.every(EVENTS)]
    assert all(len(name) <= 253 for name in names)
    assert [name.rpartition(".")[0] for name in names] == ["a" * 200, "system-node-x", "event"]


async def test_a_long_message_is_cut_and_marked(client: FakeClient, clock: FakeClock) -> None:
    events = recorder(client, clock)
    async with running(events):
        events.record(JOB, "Normal", "Long", "x" * 2000)
        await events.drain()
    message = client.every(EVENTS)[0]["message"]
    assert len(message) == MESSAGE_LIMIT
    assert message.endswith("xx ...")


@hypothesis_settings(deadline=None)
@given(st.text(max_size=3000))
def test_cutting_keeps_what_fits_and_never_breaks_a_character(message: str) -> None:
    short = cut(message)
    encoded = short.encode("utf-8", "replace")
    assert len(encoded) <= MESSAGE_LIMIT
    if short != message:
        assert short.endswith(" ...")
        assert len(encoded) > MESSAGE_LIMIT - 4
        assert message.encode("utf-8", "replace").startswith(encoded[:-4])


def test_time_is_the_clocks(client: FakeClient) -> None:
    clock = FakeClock(START + timedelta(seconds=0.9))
    events = recorder(client, clock)
    events.record(JOB, "Normal", "Seen", "hello")
    [note] = events._notes.values()
    assert events._tree(note, "team")["firstTimestamp"] == "2026-01-01T00:00:00Z"


async def test_news_waits_while_there_is_something_more_urgent(client: FakeClient, clock: FakeClock) -> None:
    busy = True
    events = recorder(client, clock)
    events.busy = lambda: busy
    async with running(events):
        events.record(JOB, "Normal", "Seen", "hello")
        await clock.advance(1)
        assert client.every(EVENTS) == []
        busy = False
        await clock.advance(1)
        assert len(client.every(EVENTS)) == 1


async def test_no_news_waits_longer_than_it_may(client: FakeClient, clock: FakeClock) -> None:
    events = recorder(client, clock, hold_seconds=5)
    events.busy = lambda: True
    async with running(events):
        events.record(JOB, "Normal", "Seen", "hello")
        await clock.advance(4)
        assert client.every(EVENTS) == []
        await clock.advance(2)
        assert len(client.every(EVENTS)) == 1


async def test_where_news_would_be_dropped_it_is_not_held_back_and_more_is_written_at_once(clock: FakeClock) -> None:
    under_way, most = 0, 0

    class Slow(FakeClient):
        async def create(self, resource: Any, obj: Any, namespace: str | None = None) -> Any:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await clock.sleep(0.1)
            under_way -= 1
            return await super().create(resource, obj, namespace)

    slow, heard = Slow(), []
    events = recorder(slow, clock, waiting=100, writers=2, crowd_writers=8, hold_seconds=1000)
    events.busy, events.on_dropped = lambda: True, lambda: heard.append(1)
    async with running(events):
        for number in range(500):  # 50 a second: five at once are enough
            events.record(ObjectReference("v1", "Pod", f"p{number}", "team"), "Normal", "Seen", "hello")
            await clock.advance(0.02)
        assert (events.dropped, most) == (0, 8)
        assert events._queue.qsize() in range(40, 65), "no more than a crowd is written before its time"
        left = events._queue.qsize()
        await clock.advance(60)
        assert events._queue.qsize() in range(left - 16, left), "the rest waits its turn"
        for number in range(200):
            events.record(ObjectReference("v1", "Pod", f"q{number}", "team"), "Normal", "Seen", "hello")
        assert events.dropped == len(heard) > 0


async def test_a_last_word_is_not_held_back(client: FakeClient, clock: FakeClock) -> None:
    events = recorder(client, clock, hold_seconds=1000)
    events.busy = lambda: True
    async with running(events):
        events.record(JOB, "Normal", "Seen", "hello")
        await clock.advance(1)
        last_word = asyncio.create_task(events.drain())
        await clock.advance(1)
        await last_word
        assert len(client.every(EVENTS)) == 1
