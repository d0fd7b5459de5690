"""Stores that keep some objects of what passes by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.kube.loop.objects import THINGS, thing
from trainplane.kube.projection import Projection
from trainplane.kube.relist import Relist
from trainplane.kube.resource import Key
from trainplane.kube.store import Store

if TYPE_CHECKING:
    from trainplane.kube.projection import ObjectHeader
    from trainplane.kube.store import Change

A = Key("default", "a")


def keeping() -> Store:
    """Return a store of objects that say `mine`."""
    return Store(THINGS, Projection(keeps=lambda header: b"mine" in bytes(header.fields.get("spec", b""))))


def seen(store: Store, name: str, version: int, spec: str = "mine") -> ObjectHeader:
    return store.read(thing(name, version, spec=spec))


def types(changes: tuple[Change, ...]) -> list[str]:
    return [change.type for change in changes]


def test_what_is_not_kept_leaves_no_trace() -> None:
    store = keeping()
    assert store.put(seen(store, "b", 5, "theirs")) == ()
    assert store.delete(seen(store, "b", 6, "theirs")) == ()
    assert (len(store), store._tombstones) == (0, {})


def test_what_is_kept_no_longer_goes_and_may_come_back() -> None:
    store = keeping()
    assert types(store.put(seen(store, "a", 5))) == ["ADDED"]
    assert types(store.put(seen(store, "a", 6, "theirs"))) == ["DELETED"]
    assert A not in store
    assert store.put(seen(store, "a", 5)) == (), "an old event does not bring it back"
    assert types(store.put(seen(store, "a", 7))) == ["ADDED"]
    assert types(store.delete(seen(store, "a", 8, "theirs"))) == ["DELETED"]


def test_an_old_event_of_what_is_not_kept_removes_nothing() -> None:
    store = keeping()
    store.put(seen(store, "a", 7))
    assert store.put(seen(store, "a", 6, "theirs")) == ()
    assert A in store


def test_a_list_sets_nothing_aside_that_is_not_kept_and_finds_what_is_kept_no_longer() -> None:
    store = keeping()
    store.put(seen(store, "a", 5))
    store.observed = 10
    listing = Relist(store)
    for number in range(100):
        assert listing.add(seen(store, f"other-{number}", 3, "theirs")) == ()
    assert (listing._aside, listing._named) == ({}, set())
    assert types(listing.add(seen(store, "a", 11, "theirs"))) == ["DELETED"]
    assert list(listing.finish(12)) == []
    assert len(store) == 0


def test_a_first_list_that_sees_an_object_change_hands_does_not_keep_it() -> None:
    store = keeping()
    listing = Relist(store, initial=True)
    assert types(listing.add(seen(store, "a", 5))) == ["ADDED"]
    assert types(listing.add(seen(store, "a", 6, "theirs"))) == ["DELETED"]
    assert list(listing.finish(7)) == []
    assert A not in store
