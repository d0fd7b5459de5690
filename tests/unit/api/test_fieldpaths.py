"""Paths of fields as an admin writes them."""

from __future__ import annotations

import pytest

from trainplane.api.crds.schema import schema_of
from trainplane.api.fieldpaths import FieldPaths, parse, problem_of
from trainplane.api.patches import RuntimeSpecPatch

SCHEMA = schema_of(RuntimeSpecPatch)
POD = "template.spec.replicatedJobs[*].template.spec.template"


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("template", ("template",)),
        ("a.b[*].c", ("a", "b", "*", "c")),
        ("a[example.com/x].b", ("a", "example.com/x", "b")),
        ("a[*][b]", ("a", "*", "b")),
    ],
)
def test_steps(text: str, steps: tuple[str, ...]) -> None:
    assert parse(text) == steps


@pytest.mark.parametrize("text", ["", ".", "a..b", "a[", "a[]", "a.b.", "[*]", "a b", "a[*]b", "*"])
def test_what_is_no_path(text: str) -> None:
    with pytest.raises(ValueError, match="is no path of a field"):
        parse(text)
    assert "is no path of a field" in problem_of(text, SCHEMA)


@pytest.mark.parametrize(
    "text",
    [
        "template",
        "template.metadata.labels[example.com/team]",
        f"{POD}.spec.nodeSelector",
        f"{POD}.spec.containers[node].env[HF_TOKEN].value",
        f"{POD}.spec.volumes[*].persistentVolumeClaim",
        f"{POD}.metadata.annotations[kueue.x-k8s.io/podset-required-topology]",
    ],
)
def test_fields_that_there_are(text: str) -> None:
    assert problem_of(text, SCHEMA) == ""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("templates", "no field templates: did you mean template?"),
        (f"{POD}.spec.nodeSelectors", "no field nodeSelectors: did you mean nodeSelector?"),
        (f"{POD}.spec.serviceAccountName.x", "no field x"),
        ("spec.runtimePatches", "no field spec"),
    ],
)
def test_a_field_that_there_is_not(text: str, problem: str) -> None:
    assert problem in problem_of(text, SCHEMA)


def test_a_set_is_walked_beside_a_tree() -> None:
    paths = FieldPaths.of(["a.b", "a[*].c", "d"])
    assert not paths.holds_all
    assert paths.below("d").holds_all
    assert paths.below("a").below("b").holds_all
    assert paths.below("a").below("x").below("c").holds_all
    assert not paths.below("a").below("x").holds_all
    assert paths.below("e").paths == ()
    assert not FieldPaths.of([]).holds_all
