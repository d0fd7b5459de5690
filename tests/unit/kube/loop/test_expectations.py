from __future__ import annotations

from tests.unit.kube.loop.objects import THINGS, thing
from trainplane.kube.expectations import Expectations
from trainplane.kube.resource import Key
from trainplane.kube.store import Store
from trainplane.kube.testing.clock import FakeClock

A, B = Key("default", "a"), Key("default", "b")


def scene() -> tuple[Store, Expectations, FakeClock]:
    store, clock = Store(THINGS), FakeClock()
    store.put(store.read(thing("a", 10)))
    store.observed = 10
    return store, Expectations(store, clock, patience=60), clock


def test_nothing_written_nothing_pending() -> None:
    _, writes, _ = scene()
    assert not writes.pending(A)


def test_a_write_is_pending_until_the_store_has_it() -> None:
    store, writes, _ = scene()
    writes.note(A, "12")
    assert writes.pending(A)
    assert not writes.pending(B)
    store.put(store.read(thing("a", 11)))
    assert writes.pending(A), "somebody else's write in between is not ours"
    store.put(store.read(thing("a", 12)))
    assert not writes.pending(A)
    assert len(writes) == 0


def test_a_later_version_contains_ours() -> None:
    store, writes, _ = scene()
    writes.note(A, 12)
    store.put(store.read(thing("a", 15)))
    assert not writes.pending(A)


def test_an_answer_that_comes_after_its_event_is_not_waited_for() -> None:
    store, writes, _ = scene()
    store.put(store.read(thing("a", 12)))
    writes.note(A, 12)
    assert len(writes) == 0
    assert not writes.pending(A)


def test_of_two_writes_the_later_is_waited_for_in_any_order() -> None:
    store, writes, _ = scene()
    writes.note(A, 14)
    writes.note(A, 12)
    store.put(store.read(thing("a", 12)))
    assert writes.pending(A)
    store.put(store.read(thing("a", 14)))
    assert not writes.pending(A)


def test_an_object_deleted_meanwhile_is_not_waited_for() -> None:
    store, writes, _ = scene()
    writes.note(B, 12)
    assert writes.pending(B)
    store.observed = 13  # its creation and its deletion have come by, or only a bookmark
    assert not writes.pending(B)


async def test_a_write_that_never_arrives_is_given_up() -> None:
    _, writes, clock = scene()
    writes.note(A, 12)
    await clock.advance(59)
    assert writes.pending(A)
    await clock.advance(1)
    assert not writes.pending(A)
    assert len(writes) == 0


def test_a_write_that_changed_nothing_is_seen_already() -> None:
    _, writes, _ = scene()
    writes.note(A, 10)
    assert not writes.pending(A)
