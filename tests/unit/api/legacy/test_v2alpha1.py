"""The older shape's CRDs: kinds of today's names, and nothing else that kubectl could take for today's."""

from __future__ import annotations

from typing import Any

import pytest

from trainplane.api.crds import emit, older

Tree = dict[str, Any]

OLDER = {kind.name: emit.crd(kind) for kind in older.KINDS}
TODAYS = {kind.name: emit.crd(kind) for kind in emit.KINDS}


def spoken(crd: Tree) -> set[str]:
    """Return what kubectl finds a resource by, beside its kind: in whichever letters."""
    names = crd["spec"]["names"]
    return {names["plural"], names["singular"], *names.get("shortNames", []), *names.get("categories", [])}


def test_kinds_are_todays() -> None:
    assert OLDER.keys() == TODAYS.keys()
    for name, crd in OLDER.items():
        assert crd["spec"]["names"]["kind"] == name
        assert crd["spec"]["scope"] == TODAYS[name]["spec"]["scope"]


def test_nothing_else_that_kubectl_asks_by_is() -> None:
    today = {name.lower() for crd in TODAYS.values() for name in spoken(crd)}
    assert all(spoken(crd).isdisjoint(today) for crd in OLDER.values())


@pytest.mark.parametrize("kind", OLDER)
def test_every_kind_has_a_status_that_only_the_controller_writes(kind: str) -> None:
    (version,) = OLDER[kind]["spec"]["versions"]
    assert version["name"] == "v2alpha1"
    assert version["subresources"] == {"status": {}}
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    assert "conditions" in properties["status"]["properties"]


def test_runtimes_are_todays_in_all_that_they_say() -> None:
    for kind in ("TrainingRuntime", "ClusterTrainingRuntime"):
        theirs, ours = (
            crds[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
            for crds in (OLDER, TODAYS)
        )
        assert theirs == ours
