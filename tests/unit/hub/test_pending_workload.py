"""What a Workload says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.hub.pending_world import GPU, NOW, holder, pod_set, workload
from trainplane.api.quantity import Quantity
from trainplane.hub.pending.workload import (
    ends_at,
    gates_of,
    moment,
    needs_of,
    rank,
    reserved_at,
    trainer_of,
    usage_of,
    waits,
)

Tree = dict[str, Any]


def test_needs_are_the_pods_requests_until_kueue_has_looked() -> None:
    (need,) = needs_of(workload("job", pod_set(count=3, requests={GPU: "2", "cpu": "100u", "memory": "1500m"})))
    assert need.per_pod == {GPU: Quantity.of(2), "cpu": Quantity.of("1m"), "memory": Quantity.of(2)}
    assert need.total[GPU] == Quantity.of(6)


def test_kueue_s_own_numbers_win_over_the_pods() -> None:
    requests = [{"name": "node", "resources": {GPU: "8", "credits": "40"}}]
    (need,) = needs_of(workload("job", pod_set(count=4), resourceRequests=requests))
    assert need.per_pod == {GPU: Quantity.of(2), "credits": Quantity.of(10)}
    assert need.scaled(1).total == need.per_pod


def test_what_was_assigned_counts_after_admission() -> None:
    (need,) = needs_of(holder("job", "12"))
    assert need.per_pod == {GPU: Quantity.of(3)}


def test_reclaimed_pods_need_nothing_more() -> None:
    tree = workload("job", pod_set("init", count=1), pod_set(count=4), reclaimablePods=[{"name": "init", "count": 1}])
    init, node = needs_of(tree)
    assert (init.count, node.count) == (0, 4)
    assert init.total == {GPU: Quantity.of(0)}


@given(st.integers(1, 50), st.integers(1, 50))
def test_the_need_of_a_pod_times_the_pods_is_the_need(count: int, each: int) -> None:
    requests = [{"name": "node", "resources": {"cpu": f"{count * each}m"}}]
    (need,) = needs_of(workload("job", pod_set(count=count), resourceRequests=requests))
    assert need.total == {"cpu": Quantity.of(f"{count * each}m")}


def test_the_training_pods_are_those_named_node_or_the_only_ones() -> None:
    launcher, node = needs_of(workload("job", pod_set("launcher"), pod_set("node")))
    assert trainer_of([launcher, node]) is node
    assert trainer_of([launcher]) is launcher
    assert trainer_of(needs_of(workload("job", pod_set("a"), pod_set("b")))) is None


def test_the_line_is_ordered_by_priority_then_time_then_uid() -> None:
    first = workload("z", priority=10, created="2026-03-01T12:00:00Z")
    second = workload("b", created="2026-03-01T10:00:00Z")
    third = workload("a", created="2026-03-01T11:00:00Z")
    fourth = workload("c", created="2026-03-01T11:00:00Z")
    assert sorted([fourth, third, second, first], key=rank) == [first, second, third, fourth]


@pytest.mark.parametrize(
    ("reason", "status", "first"),
    [
        ("PodsReadyTimeout", "True", "other"),
        ("AdmissionCheck", "True", "other"),
        ("Preempted", "True", "evicted"),
        ("PodsReadyTimeout", "False", "evicted"),
    ],
)
def test_an_eviction_puts_a_workload_behind_only_for_some_reasons(reason: str, status: str, first: str) -> None:
    told = {"Evicted": (status, reason, "")}
    evicted = workload("evicted", created="2026-03-01T09:00:00Z", conditions=told)
    other = workload("other", created="2026-03-01T10:00:00Z")
    assert min([evicted, other], key=rank)["metadata"]["uid"] == f"wl-{first}"


@pytest.mark.parametrize(
    "change",
    [
        lambda w: w["spec"].update(active=False),
        lambda w: w["metadata"].update(annotations={"kueue.x-k8s.io/admission-gated-by": "a.com/b"}),
        lambda w: w["status"]["conditions"].append({"type": "Finished", "status": "True"}),
        lambda w: w["status"]["conditions"].append({"type": "QuotaReserved", "status": "True"}),
        lambda w: w["status"]["conditions"].append({"type": "QuotaReserved", "status": "False", "reason": "OnHold"}),
    ],
)
def test_who_does_not_wait(change: Any) -> None:
    tree = workload()
    assert waits(tree, NOW)
    change(tree)
    assert not waits(tree, NOW)


def test_gates_are_read_one_by_one() -> None:
    gated = {"metadata": {"annotations": {"kueue.x-k8s.io/admission-gated-by": "a.com/b, c.com/d,"}}}
    assert gates_of(gated) == ("a.com/b", "c.com/d")
    assert gates_of(None) == ()


def test_usage_is_by_flavor_and_resource_and_shrinks_with_reclaimed_pods() -> None:
    tree = holder("job", "8")
    assert usage_of(tree) == {("a", GPU): Quantity.of(8)}
    tree["status"]["reclaimablePods"] = [{"name": "node", "count": 3}]
    assert usage_of(tree) == {("a", GPU): Quantity.of(2)}
    tree["status"]["reclaimablePods"] = [{"name": "node", "count": 4}]
    assert usage_of(tree) == {("a", GPU): Quantity.of(0)}


def test_when_a_holder_ends() -> None:
    tree = holder("job", "8")
    assert ends_at(tree, None) is None
    tree["spec"]["maximumExecutionTimeSeconds"] = 7200
    assert ends_at(tree, None) == datetime(2026, 3, 1, 13, 0, tzinfo=UTC)
    tree["status"]["accumulatedPastExecutionTimeSeconds"] = 3600
    assert ends_at(tree, None) == datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    progress = {"estimatedRemainingSeconds": 60, "lastUpdatedTime": "2026-03-01T11:30:00Z"}
    assert ends_at(tree, {"status": {"trainerStatus": progress}}) == datetime(2026, 3, 1, 11, 31, tzinfo=UTC)
    assert ends_at(workload(), None) is None


def test_times() -> None:
    assert moment(None) is None
    assert reserved_at(holder("job", "1")) == datetime(2026, 3, 1, 11, 0, tzinfo=UTC)
    assert reserved_at(workload()) is None
