from __future__ import annotations

import sys
from typing import Any

import msgspec

from tests.unit.kube.loop.objects import THINGS, raw, thing, tree
from trainplane.kube.relist import Relist
from trainplane.kube.resource import Key
from trainplane.kube.store import Change, Store


def filled(**versions: int) -> Store:
    store = Store(THINGS)
    for name, version in versions.items():
        store.put(store.read(thing(name, version)))
        store.observed = max(store.observed, version)
    return store


def add(relist: Relist, store: Store, name: str, version: int, **fields: Any) -> tuple[Change, ...]:
    return relist.add(store.read(thing(name, version, **fields)))


def short(changes: Any) -> list[tuple[str, str]]:
    return [(change.type, change.key.name) for change in changes]


def test_objects_are_there_before_the_list_ends() -> None:
    store = filled()
    relist = Relist(store, initial=True)
    (change,) = add(relist, store, "a", 5)
    assert change.initial
    assert Key("default", "a") in store
    assert short(relist.finish(9)) == []
    assert store.observed == 9


def test_what_the_list_does_not_name_is_deleted_at_its_end() -> None:
    store = filled(a=1, b=2, c=3)
    relist = Relist(store)
    assert short(add(relist, store, "b", 2)) == []
    assert len(store) == 3
    assert short(relist.finish(9)) == [("DELETED", "a"), ("DELETED", "c")]


def test_a_missed_delete_cannot_be_undone_by_an_older_event() -> None:
    store = filled(a=1)
    assert short(Relist(store).finish(9)) == [("DELETED", "a")]
    assert store.put(store.read(thing("a", 8))) == ()
    assert short(store.put(store.read(thing("a", 10)))) == [("ADDED", "a")]


def test_a_delete_during_the_list_counts() -> None:
    store = filled(a=1)
    relist = Relist(store)
    add(relist, store, "a", 1)
    assert short(store.delete(store.read(thing("a", 12)))) == [("DELETED", "a")]
    assert short(relist.finish(12)) == []


def test_a_list_older_than_the_store_is_stale() -> None:
    relist = Relist(filled(a=10))
    assert relist.is_stale(9)
    assert not relist.is_stale(10)
    assert not Relist(filled(a=10), force=True).is_stale(9)


def test_an_unknown_old_object_waits_for_the_end() -> None:
    store = filled(a=10)
    relist = Relist(store)
    assert add(relist, store, "lost", 7) == ()
    add(relist, store, "a", 10)
    assert Key("default", "lost") not in store
    assert short(relist.finish(10)) == [("ADDED", "lost")]


def test_an_object_set_aside_and_then_changed_or_deleted_is_not_waited_for() -> None:
    store = filled(a=10)
    relist = Relist(store)
    add(relist, store, "a", 10)
    add(relist, store, "b", 7)
    assert short(add(relist, store, "b", 11)) == [("ADDED", "b")]
    add(relist, store, "c", 8)
    store.delete(store.read(thing("c", 12)))
    assert short(relist.finish(12)) == []
    assert set(store) == {Key("default", "a"), Key("default", "b")}


def test_an_object_deleted_while_the_list_is_sent_is_not_revived() -> None:
    store = filled(a=10)
    relist = Relist(store)
    add(relist, store, "a", 10)
    relist.delete(store.read(thing("b", 12)))
    add(relist, store, "b", 8)
    add(relist, store, "c", 8)
    relist.delete(store.read(thing("c", 13)))
    assert short(relist.finish(13)) == []


def test_an_object_whose_events_come_out_of_order_shows_nothing() -> None:
    store = filled(a=10, b=9)
    relist = Relist(store)
    add(relist, store, "a", 10)
    assert short(add(relist, store, "b", 12)) == [("MODIFIED", "b")]
    assert add(relist, store, "b", 9) == ()
    assert short(relist.finish(12)) == []
    assert store.resource_version(Key("default", "b")) == 12


def test_a_new_list_of_old_objects_is_of_a_server_that_was_restored_and_its_revision_raised() -> None:
    store = filled(a=10, b=20, same=5)
    store.delete(store.read(thing("gone", 30)))
    store.observed = 30
    relist = Relist(store)
    assert add(relist, store, "a", 3) == ()
    assert add(relist, store, "gone", 4) == ()
    assert add(relist, store, "same", 5) == ()
    assert short(relist.finish(1000)) == [("MODIFIED", "a"), ("ADDED", "gone"), ("DELETED", "b")]
    assert store.observed == 1000
    assert short(store.put(store.read(thing("b", 1001)))) == [("ADDED", "b")]


def test_what_changes_while_such_a_list_is_sent_is_newer_than_the_list() -> None:
    store = filled(a=10, b=20)
    store.observed = 30
    relist = Relist(store)
    add(relist, store, "a", 3)
    add(relist, store, "b", 4)
    assert short(add(relist, store, "a", 1001)) == [("MODIFIED", "a")]
    assert short(relist.delete(store.read(thing("b", 1002)))) == [("DELETED", "b")]
    assert short(relist.finish(1002)) == []
    assert store.resource_version(Key("default", "a")) == 1001


def test_a_stale_list_of_old_objects_changes_nothing() -> None:
    store = filled(a=10)
    relist = Relist(store)
    assert add(relist, store, "a", 3) == ()
    assert relist.is_stale(5)
    assert store.resource_version(Key("default", "a")) == 10


def test_a_forced_list_is_the_truth() -> None:
    store = filled(a=10, b=20)
    store.delete(store.read(thing("c", 30)))
    store.observed = 30
    relist = Relist(store, force=True)
    assert short(add(relist, store, "a", 3)) == [("MODIFIED", "a")]
    assert short(add(relist, store, "c", 4)) == [("ADDED", "c")]
    assert short(relist.finish(5)) == [("DELETED", "b")]
    assert store.observed == 5
    assert short(store.put(store.read(thing("b", 6)))) == [("ADDED", "b")]


def test_a_forced_list_compares_what_has_the_same_version() -> None:
    store = filled(a=10, b=20)
    relist = Relist(store, force=True)
    assert short(add(relist, store, "a", 10, spec={"value": "of another history"})) == [("MODIFIED", "a")]
    assert add(relist, store, "b", 20) == ()
    assert short(relist.finish(15)) == []
    assert not relist.in_doubt


def test_a_list_that_shows_a_restore_leaves_equal_versions_in_doubt_and_one_that_compares_does_not() -> None:
    store = filled(a=10, b=20)
    relist = Relist(store)
    assert add(relist, store, "a", 10, spec={"value": "of another history"}) == ()
    add(relist, store, "b", 4)
    assert short(relist.finish(30)) == [("MODIFIED", "b")]
    assert relist.in_doubt
    again = Relist(store, compare=True)
    assert short(add(again, store, "a", 10, spec={"value": "of another history"})) == [("MODIFIED", "a")]
    assert add(again, store, "b", 4) == ()
    assert short(again.finish(30)) == []
    assert not again.in_doubt


def test_a_list_that_compares_is_no_less_wary_of_an_old_one() -> None:
    assert Relist(filled(a=10), compare=True).is_stale(9)


def test_what_is_set_aside_does_not_keep_its_page_alive() -> None:
    text = bytes(raw(tree("lost", 7)))
    page = b" " * 1_000_000 + text
    held = sys.getrefcount(page)
    store = filled(a=10)
    relist = Relist(store)
    relist.add(store.read(msgspec.Raw(memoryview(page)[1_000_000:])))
    assert sys.getrefcount(page) == held
    assert [bytes(aside.raw) for aside in relist._aside.values()] == [text]
