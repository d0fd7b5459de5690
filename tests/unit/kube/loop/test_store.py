from __future__ import annotations

import gc
from typing import Any

import msgspec
import pytest

from tests.unit.kube.loop.objects import THINGS, thing
from trainplane.kube import store as store_module
from trainplane.kube.projection import Index
from trainplane.kube.resource import Key
from trainplane.kube.store import Change, Store

A = Key("default", "a")


class Spec(msgspec.Struct):
    queues: list[str] = []


class View(msgspec.Struct):
    spec: Spec = msgspec.field(default_factory=Spec)


def indexed() -> Store:
    return Store(THINGS, indexes={"queue": Index(View, lambda view: view.spec.queues)})


def put(store: Store, name: str, version: int, **fields: Any) -> tuple[Change, ...]:
    return store.put(store.read(thing(name, version, **fields)))


def delete(store: Store, name: str, version: int, **fields: Any) -> tuple[Change, ...]:
    return store.delete(store.read(thing(name, version, **fields)))


def types(changes: tuple[Change, ...]) -> list[str]:
    return [change.type for change in changes]


def test_an_empty_store_answers_with_nothing() -> None:
    store = indexed()
    assert (store.get(A), store.entry(A), store.uid(A), store.resource_version(A)) == (None,) * 4
    assert store.decode(A, dict) is None
    assert (len(store), store.keys(), A in store) == (0, [], False)
    assert store.by_index("queue", "gold") == frozenset()


def test_a_new_object_is_added() -> None:
    store = indexed()
    (change,) = put(store, "a", 5, uid="u", spec={"x": 1})
    assert (change.type, change.key, change.old, change.initial) == ("ADDED", A, None, False)
    assert change.new == store.entry(A)
    assert (store.uid(A), store.resource_version(A), len(store)) == ("u", 5, 1)
    decoded = store.decode(A, dict)
    assert decoded is not None
    assert decoded["spec"] == {"x": 1}
    assert msgspec.json.decode(store.get(A) or b"") == decoded


def test_keys_are_keys() -> None:
    store = indexed()
    put(store, "b", 1)
    put(store, "a", 2, spec={"queues": ["gold"]})
    assert store.keys() == [Key("default", "b"), A]
    assert all(isinstance(key, Key) for key in (*store, *store.keys(), *store.by_index("queue", "gold")))


def test_a_newer_version_modifies() -> None:
    store = indexed()
    put(store, "a", 5)
    before = store.entry(A)
    (change,) = put(store, "a", 6)
    assert (change.type, change.old, change.new) == ("MODIFIED", before, store.entry(A))


@pytest.mark.parametrize("version", [4, 5])
def test_a_repeated_or_older_version_changes_nothing(version: int) -> None:
    store = indexed()
    put(store, "a", 5, spec={"x": "new"})
    assert put(store, "a", version, spec={"x": "old"}) == ()
    assert store.resource_version(A) == 5


def test_versions_compare_as_numbers() -> None:
    store = indexed()
    put(store, "a", 9)
    assert types(put(store, "a", 10)) == ["MODIFIED"]


def test_an_object_made_again_is_deleted_first() -> None:
    store = indexed()
    put(store, "a", 5, uid="one")
    deleted, added = put(store, "a", 8, uid="two")
    assert (deleted.type, deleted.old and deleted.old.uid, deleted.new) == ("DELETED", "one", None)
    assert (added.type, added.old, added.new and added.new.uid) == ("ADDED", None, "two")


def test_an_older_self_does_not_come_back() -> None:
    store = indexed()
    put(store, "a", 8, uid="two")
    assert put(store, "a", 5, uid="one") == ()
    assert delete(store, "a", 6, uid="one") == ()
    assert store.uid(A) == "two"


def test_a_delete_removes_and_gives_the_last_version() -> None:
    store = indexed()
    put(store, "a", 5)
    before = store.entry(A)
    assert delete(store, "a", 7) == (Change("DELETED", A, before, None),)
    assert A not in store


def test_a_delete_at_the_objects_own_version_counts() -> None:
    store = indexed()
    put(store, "a", 5)
    assert types(delete(store, "a", 5)) == ["DELETED"]


def test_a_delete_of_nothing_changes_nothing_but_is_remembered() -> None:
    store = indexed()
    assert delete(store, "a", 7) == ()
    assert put(store, "a", 6) == ()
    assert types(put(store, "a", 8)) == ["ADDED"]


def test_what_was_deleted_stays_deleted() -> None:
    store = indexed()
    put(store, "a", 5)
    delete(store, "a", 7)
    assert put(store, "a", 6) == ()
    assert delete(store, "a", 6) == ()
    assert put(store, "a", 7) == (), "a late delete must not weaken an earlier one"


def test_deletions_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "TOMBSTONES", 2)
    store = indexed()
    for version, name in enumerate("abc", 10):
        delete(store, name, version)
    assert types(put(store, "a", 1)) == ["ADDED"], "the oldest is forgotten"
    assert put(store, "b", 1) == ()
    assert put(store, "c", 1) == ()


def test_force_takes_any_version_that_differs() -> None:
    store = indexed()
    put(store, "a", 50)
    delete(store, "b", 60)
    assert types(store.put(store.read(thing("a", 3)), force=True)) == ["MODIFIED"]
    assert store.put(store.read(thing("a", 3)), force=True) == ()
    assert types(store.put(store.read(thing("b", 4)), force=True)) == ["ADDED"]
    assert types(store.put(store.read(thing("b", 4, uid="other")), force=True)) == ["DELETED", "ADDED"]


@pytest.mark.parametrize("how", ["force", "compare"])
def test_a_version_that_a_restored_server_gives_to_other_contents_is_read_anew(how: str) -> None:
    store = indexed()
    put(store, "a", 50, spec={"value": 1})
    other = store.read(thing("a", 50, spec={"value": 2}))
    assert store.put(other) == (), "nobody suspects a restore: a repeated event costs nothing"
    assert types(store.put(other, **{how: True})) == ["MODIFIED"]
    assert b'"value":2' in (store.get(Key("default", "a")) or b"")
    assert store.put(other, **{how: True}) == ()


def test_what_is_compared_is_still_not_older() -> None:
    store = indexed()
    put(store, "a", 50)
    delete(store, "b", 60)
    assert store.put(store.read(thing("a", 49, spec={"value": 2})), compare=True) == ()
    assert store.put(store.read(thing("b", 60)), compare=True) == ()
    assert types(store.put(store.read(thing("a", 50, uid="other")), compare=True)) == ["DELETED", "ADDED"]


def test_order_can_be_forgotten() -> None:
    store = indexed()
    store.observed = 60
    delete(store, "b", 60)
    store.forget_order()
    assert store.observed == 0
    assert types(put(store, "b", 4)) == ["ADDED"]


def test_initial_changes_say_so() -> None:
    store = indexed()
    (change,) = store.put(store.read(thing("a", 1)), initial=True)
    assert change.initial


def test_an_index_follows_its_objects() -> None:
    store = indexed()
    put(store, "a", 1, spec={"queues": ["gold", "silver"]})
    put(store, "b", 2, spec={"queues": ["gold"]})
    put(store, "c", 3, spec={"queues": ["gold"]})
    b, c = Key("default", "b"), Key("default", "c")
    assert store.by_index("queue", "gold") == {A, b, c}
    assert store.by_index("queue", "silver") == {A}
    put(store, "a", 4, spec={"queues": ["silver", "bronze"]})
    assert store.by_index("queue", "gold") == {b, c}
    assert store.by_index("queue", "bronze") == {A}
    delete(store, "b", 5)
    delete(store, "c", 6)
    delete(store, "a", 7)
    assert all(not store.by_index("queue", value) for value in ("gold", "silver", "bronze"))
    assert store._indexes["queue"] == {}, "a value that finds nothing costs nothing"


def test_an_unknown_index_is_an_error() -> None:
    with pytest.raises(KeyError):
        indexed().by_index("nonesuch", "x")


def test_decoded_objects_are_the_callers_own() -> None:
    store = indexed()
    put(store, "a", 1, spec={"x": 1})
    first = store.decode(A, dict)
    assert first is not None
    first["spec"]["x"] = 2
    again = store.decode(A, dict)
    assert again is not None
    assert again["spec"]["x"] == 1


def test_the_garbage_collector_walks_no_stored_object() -> None:
    store = indexed()
    for number in range(500):
        put(store, f"thing-{number}", number + 1, spec={"queues": [f"queue-{number}"]})
    gc.collect()
    gc.collect()  # a tuple of tuples is let go a round after those within
    held = [*store._entries, *store._entries.values(), *store._indexes["queue"].values()]
    assert not any(gc.is_tracked(value) for value in held)
