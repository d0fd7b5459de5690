from __future__ import annotations

import gc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.kube.loop.objects import THINGS, raw, thing, tree
from trainplane.kube.errors import DecodeError, StreamError
from trainplane.kube.projection import METADATA, METADATA_AND_STATUS, WHOLE, Index, Projection, Projector
from trainplane.kube.resource import Key

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def project(value: dict[str, Any], projection: Projection, *indexes: Index[Any]) -> dict[str, Any]:
    projector = Projector(THINGS, projection, indexes)
    decoded: dict[str, Any] = projector.project(projector.read(raw(value))).decode(dict)
    return decoded


def test_identity_is_read_without_decoding_the_rest() -> None:
    sighting = Projector(THINGS, WHOLE, ()).read(thing("a", 17, namespace="team", uid="u"))
    assert (sighting.key, sighting.resource_version, sighting.uid) == (Key("team", "a"), 17, "u")


def test_cluster_scoped_objects_have_no_namespace() -> None:
    value = tree("a", 1)
    del value["metadata"]["namespace"]
    assert Projector(THINGS, WHOLE, ()).read(raw(value)).key == Key("", "a")


def test_versions_beyond_64_bits_are_numbers_too() -> None:
    assert Projector(THINGS, WHOLE, ()).read(thing("a", 2**70)).resource_version == 2**70


def test_managed_fields_are_dropped_and_nothing_else() -> None:
    value = tree("a", 1, spec={"x": 1}, metadata={"managedFields": [{"manager": "m"}], "labels": {"a": "b"}})
    kept = project(value, WHOLE)
    del value["metadata"]["managedFields"]
    assert kept == value


def test_metadata_alone() -> None:
    kept = project(tree("a", 1, spec={"x": 1}, status={"y": 2}, metadata={"labels": {"a": "b"}}), METADATA)
    assert set(kept) == {"apiVersion", "kind", "metadata"}
    assert kept["metadata"]["labels"] == {"a": "b"}


def test_metadata_and_status() -> None:
    kept = project(tree("a", 1, spec={"x": 1}, status={"y": 2}), METADATA_AND_STATUS)
    assert set(kept) == {"apiVersion", "kind", "metadata", "status"}


def test_chosen_metadata_keeps_identity() -> None:
    value = tree("a", 1, metadata={"labels": {"a": "b"}, "annotations": {"large": "x" * 100}})
    kept = project(value, Projection(metadata=frozenset({"labels"})))
    assert set(kept["metadata"]) == {"name", "namespace", "uid", "resourceVersion", "labels"}


def test_items_of_a_list_get_the_kind_that_the_list_left_out() -> None:
    value = tree("a", 1)
    expected = dict(value)
    del value["apiVersion"], value["kind"]
    assert project(value, WHOLE) == expected


@given(st.dictionaries(st.text(max_size=8).filter(lambda name: name not in tree("a", 1)), JSON, max_size=4))
def test_fields_that_nobody_knows_survive(unknown: dict[str, Any]) -> None:
    value = tree("a", 1) | unknown
    assert project(value, WHOLE) == value


@pytest.mark.parametrize(
    "text",
    [
        b"[]",
        b"{}",
        b"null",
        b'{"metadata":null}',
        b'{"metadata":{}}',
        b'{"metadata":{"name":"a"}}',
        b'{"metadata":{"name":"a","resourceVersion":"abc"}}',
        b'{"metadata":{"resourceVersion":"1"}}',
        b'{"metadata":{"name":7,"resourceVersion":"1"}}',
        b'{"metadata":',
    ],
)
def test_what_is_no_object_is_a_broken_stream(text: bytes) -> None:
    with pytest.raises(StreamError, match="numeric resourceVersion"):
        Projector(THINGS, WHOLE, ()).read(msgspec.Raw(text))


class Spec(msgspec.Struct):
    queue: str = ""
    zones: list[str] = []


class View(msgspec.Struct):
    spec: Spec


def entry_of(value: dict[str, Any], projection: Projection, *indexes: Index[Any]) -> Any:
    projector = Projector(THINGS, projection, indexes)
    return projector.project(projector.read(raw(value)))


def test_indexes_see_fields_that_the_projection_drops() -> None:
    index = Index(View, lambda view: [view.spec.queue])
    entry = entry_of(tree("a", 1, spec={"queue": "gold"}), METADATA, index)
    assert entry.indexed == (("gold",),)


def test_an_index_names_each_value_once_and_in_order() -> None:
    index = Index(View, lambda view: view.spec.zones)
    entry = entry_of(tree("a", 1, spec={"zones": ["b", "a", "b"]}), WHOLE, index)
    assert entry.indexed == (("b", "a"),)


def test_an_object_that_does_not_fit_an_index_is_kept_all_the_same() -> None:
    entry = entry_of(tree("a", 1, spec="odd"), WHOLE, Index(View, lambda view: [view.spec.queue]))
    assert entry.indexed == ((),)
    assert entry.decode(dict)["spec"] == "odd"


def test_decoding_into_a_type_that_does_not_fit_says_so() -> None:
    with pytest.raises(DecodeError):
        entry_of(tree("a", 1, spec="odd"), WHOLE).decode(View)


def test_the_garbage_collector_does_not_know_entries() -> None:
    entry = entry_of(tree("a", 1, spec={"queue": "gold"}), WHOLE, Index(View, lambda view: [view.spec.queue]))
    assert not gc.is_tracked(entry)


def test_indexes_of_one_type_read_an_object_once() -> None:
    seen: list[View] = []

    def note(view: View) -> list[str]:
        seen.append(view)
        return [view.spec.queue]

    entry = entry_of(tree("a", 1, spec={"queue": "gold"}), WHOLE, Index(View, note), Index(View, note))
    assert entry.indexed == (("gold",), ("gold",))
    assert seen[0] is seen[1]
