"""The fake server's storage, where histories grow long and lists are many pages."""

from __future__ import annotations

import pytest

from trainplane.kube.errors import ConflictError, GoneError
from trainplane.kube.resource import Key
from trainplane.kube.testing.storage import Collection, Storage

THINGS = Collection("", "v1", "things")


def _thing(name: str, **spec: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": name, "namespace": "n"}, "spec": spec}


def _filled() -> Storage:
    storage = Storage()
    for name in ("c", "a", "b"):
        storage.put(THINGS, _thing(name))
    return storage


def test_a_list_of_a_revision_stays_as_it_was_while_the_next_page_is_asked_for() -> None:
    storage = _filled()
    then = storage.revision
    first = storage.listed(THINGS, then)
    storage.delete(THINGS, Key("n", "a"))
    assert [key.name for key, _ in first] == ["a", "b", "c"]
    assert storage.listed(THINGS, then) == first
    assert [key.name for key, _ in storage.listed(THINGS, storage.revision)] == ["b", "c"]
    assert storage.listed(THINGS, then) == first


def test_history_is_forgotten_up_to_a_revision() -> None:
    storage = _filled()
    storage.compact(storage.revision - 1)
    assert [change.key.name for change in storage.history] == ["b"]
    assert [key.name for key in storage.at(THINGS, storage.revision - 1)] == ["c", "a"]
    with pytest.raises(GoneError):
        storage.listed(THINGS, storage.revision - 2)
    storage.compact(1)
    assert storage.compacted == storage.revision - 1, "what is forgotten stays so"


def test_who_applied_is_known_object_by_object() -> None:
    storage, key = Storage(), Key("n", "a")
    storage.apply(THINGS, key, _thing("a", size=1), manager="one", force=False)
    storage.apply(THINGS, Key("n", "b"), _thing("b", size=2), manager="two", force=False)
    with pytest.raises(ConflictError):
        storage.apply(THINGS, key, _thing("a", size=3), manager="two", force=False)
    storage.delete(THINGS, key)
    storage.apply(THINGS, key, _thing("a", size=3), manager="two", force=False)
