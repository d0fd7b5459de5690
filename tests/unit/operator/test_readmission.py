from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.operator.objects import runtime
from trainplane.api import tree as trees
from trainplane.api.patches import RuntimePatch
from trainplane.operator.adoption import is_elsewhere, is_patched_since
from trainplane.operator.apply import applied_at

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
BODY = {"spec": runtime()["spec"]["template"]["spec"]}
POD = ("spec", "replicatedJobs", 0, "template", "spec", "template")


def patches(*times: datetime | None) -> list[RuntimePatch]:
    return [RuntimePatch(manager=f"example.com/{number}", time=time) for number, time in enumerate(times)]


@pytest.mark.parametrize(
    ("times", "since", "patched"),
    [
        ((), NOON, False),
        ((None,), NOON, False),
        ((NOON - timedelta(hours=1),), NOON, False),
        ((NOON - timedelta(seconds=1),), NOON, False),
        ((NOON,), NOON, False),
        ((NOON + timedelta(seconds=1),), NOON, True),
        ((NOON - timedelta(hours=1), NOON + timedelta(hours=1)), NOON, True),
        ((NOON,), None, True),
        ((), None, False),
    ],
    ids=[
        "no patches",
        "no times",
        "long before",
        "just before",
        "at once",
        "just after",
        "one after",
        "no moment",
        "nothing",
    ],
)
def test_a_patch_that_may_be_younger_is_told(
    times: tuple[datetime | None, ...], since: datetime | None, patched: bool
) -> None:
    assert is_patched_since(patches(*times), since) is patched


def test_the_last_apply_is_ours_and_not_of_the_status() -> None:
    entries: list[dict[str, Any]] = [
        {"manager": "kubectl", "operation": "Apply", "time": "2026-01-01T01:00:00Z"},
        {"manager": "trainer", "operation": "Update", "time": "2026-01-01T02:00:00Z"},
        {"manager": "trainer", "operation": "Apply", "subresource": "status", "time": "2026-01-01T03:00:00Z"},
        {"manager": "trainer", "operation": "Apply", "time": "2026-01-01T12:00:00Z"},
    ]
    assert applied_at({"metadata": {"managedFields": entries}}, "trainer") == NOON
    assert applied_at({"metadata": {"managedFields": entries[:3]}}, "trainer") is None
    assert applied_at({"metadata": {}}, "trainer") is None


@pytest.mark.parametrize(
    ("path", "value", "elsewhere"),
    [
        (("spec", "nodeSelector"), {"pool": "a"}, True),
        (("spec", "tolerations"), [{"operator": "Exists"}], True),
        (("spec", "schedulingGates"), [{"name": "kueue.x-k8s.io/topology"}], True),
        (("metadata", "labels"), {"kueue.x-k8s.io/podset": "node"}, True),
        (("metadata", "annotations"), {"kueue.x-k8s.io/workload": "w"}, True),
        (("spec", "nodeSelector"), {}, False),
        (("metadata", "labels"), {}, False),
        (("spec", "affinity"), {"nodeAffinity": {}}, False),
        (("spec", "containers", 0, "image"), "another", False),
    ],
    ids=str,
)
def test_only_placement_counts(path: tuple[Any, ...], value: Any, elsewhere: bool) -> None:
    other: dict[str, Any] = trees.copy(BODY)
    place: Any = other
    for step in (*POD, *path)[:-1]:
        place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
    place[path[-1]] = value
    assert is_elsewhere(other, BODY) is elsewhere
    assert is_elsewhere(BODY, other) is elsewhere
