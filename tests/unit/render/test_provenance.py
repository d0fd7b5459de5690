from __future__ import annotations

import gc
from typing import Any

import pytest

from trainplane.render.provenance import RUNTIME, Origin, Provenance, Rendered, trainjob

TORCH = Origin("plugin", "Torch")
KUEUE = Origin("patch", "kueue.x-k8s.io/manager")


def test_what_nobody_wrote_came_from_the_ground() -> None:
    assert Rendered({"a": {"b": [1]}}, Provenance()).origin_of("a", "b", 0) == RUNTIME
    assert Rendered({"a": 1}, Provenance(TORCH)).origin_of("a") == TORCH


def test_a_mark_covers_what_is_below_it_until_a_deeper_one() -> None:
    tree: dict[str, Any] = {"spec": {"labels": {"a": "1", "b": "2"}}}
    provenance = Provenance()
    provenance.field(tree, "spec", KUEUE)
    provenance.field(tree["spec"]["labels"], "b", TORCH)
    rendered = Rendered(tree, provenance)
    assert rendered.origin_of("spec", "labels", "a") == KUEUE
    assert rendered.origin_of("spec", "labels", "b") == TORCH


def test_an_entry_of_a_list_is_found_wherever_it_moves() -> None:
    entry = {"name": "B"}
    tree: dict[str, Any] = {"env": [{"name": "A"}, entry]}
    provenance = Provenance()
    provenance.entry(entry, TORCH)
    tree["env"].reverse()
    rendered = Rendered(tree, provenance)
    assert rendered.origin_of("env", ("name", "B"), "name") == TORCH
    assert rendered.origin_of("env", 0) == TORCH
    assert rendered.origin_of("env", ("name", "A")) == RUNTIME


def test_an_entry_written_anew_forgets_who_changed_its_fields() -> None:
    entry = {"name": "A", "value": "1"}
    provenance = Provenance()
    provenance.field(entry, "value", KUEUE)
    provenance.entry(entry, TORCH)
    assert Rendered({"env": [entry]}, provenance).origin_of("env", 0, "value") == TORCH


def test_marks_of_objects_that_are_gone_are_nobodys() -> None:
    provenance = Provenance()
    for _ in range(1000):
        provenance.entry({"gone": 1}, TORCH)
    gc.collect()
    fresh = [{"new": number} for number in range(1000)]
    rendered = Rendered({"list": fresh}, provenance)
    assert {rendered.origin_of("list", number) for number in range(1000)} == {RUNTIME}


def test_a_path_that_leads_nowhere_is_an_error() -> None:
    with pytest.raises(LookupError, match="step 1"):
        Rendered({"a": {}}, Provenance()).origin_of("a", "b")


def test_every_value_without_anything_below_is_a_leaf() -> None:
    tree = {"a": [1, {"b": None}], "empty": {}, "none": []}
    provenance = Provenance()
    provenance.field(tree, "empty", TORCH)
    assert list(Rendered(tree, provenance).leaves()) == [
        (("a", 0), 1, RUNTIME),
        (("a", 1, "b"), None, RUNTIME),
        (("empty",), {}, TORCH),
        (("none",), [], RUNTIME),
    ]


def test_an_object_inherits_what_is_known_of_another() -> None:
    old, new = {"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}
    provenance = Provenance()
    provenance.inherit(new, old)
    assert Rendered(new, provenance).origin_of("a") == RUNTIME
    provenance.field(old, "a", TORCH)
    provenance.inherit(new, old)
    provenance.field(new, "b", KUEUE)
    assert [str(Rendered(new, provenance).origin_of(key)) for key in "abc"] == [str(TORCH), str(KUEUE), "runtime"]


@pytest.mark.parametrize(
    ("origin", "text"),
    [
        (RUNTIME, "runtime"),
        (Origin("runtime", path="spec.mlPolicy.numNodes"), "runtime spec.mlPolicy.numNodes"),
        (trainjob("spec.trainer.image"), "trainjob spec.trainer.image"),
        (KUEUE, "patch kueue.x-k8s.io/manager"),
        (TORCH, "plugin Torch"),
    ],
)
def test_an_origin_reads_as_people_say_it(origin: Origin, text: str) -> None:
    assert str(origin) == text
