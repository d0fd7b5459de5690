"""Which flavor a job gets, and what each lacks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.hub.pending_world import GPU, cluster_queue, flavor, pod_set, workload
from trainplane.api.quantity import Quantity
from trainplane.hub.pending.flavors import Assignment, assign
from trainplane.hub.pending.quota import FlavorResource, QuotaTree
from trainplane.hub.pending.workload import needs_of

Tree = dict[str, Any]


def assigned(
    queue: Tree, *pod_sets: Tree, flavors: list[Tree] | None = None, others: list[Tree] | None = None
) -> Assignment:
    known = flavors if flavors is not None else [flavor("a"), flavor("b")]
    tree = QuotaTree([queue, *(others or [])])
    by_name = {each["metadata"]["name"]: each for each in known}
    return assign(queue, tree.cluster_queues["cq"], by_name, needs_of(workload("job", *pod_sets)))


TWO = {"a": {GPU: "4"}, "b": {GPU: "8"}}


def test_the_first_flavor_that_fits_is_taken() -> None:
    found = assigned(cluster_queue(flavors=TWO), pod_set(count=2))
    assert found.fits
    assert found.usage == {FlavorResource("a", GPU): Quantity.of(4)}
    assert found.flavors == {"node": ("a",)}


def test_a_flavor_with_too_little_is_passed_over() -> None:
    assert assigned(cluster_queue(flavors=TWO, used="1"), pod_set(count=2)).flavors == {"node": ("b",)}
    assert assigned(cluster_queue(flavors=TWO), pod_set(count=4)).flavors == {"node": ("b",)}


def test_what_each_flavor_lacks_is_told_when_none_fits() -> None:
    found = assigned(cluster_queue(flavors=TWO, used="3"), pod_set(count=6))
    first, second = found.shortfalls
    assert (first.flavor, first.lack, str(first.need), str(first.potential)) == ("a", "Limit", "12", "4")
    assert (second.flavor, second.lack, str(second.available)) == ("b", "Limit", "8")
    assert found.never


def test_it_is_never_only_if_no_flavor_could_ever_serve() -> None:
    queue = cluster_queue(flavors=TWO)
    queue["status"]["flavorsReservation"].append({"name": "b", "resources": [{"name": GPU, "total": "2"}]})
    found = assigned(queue, pod_set(count=4))
    assert [each.lack for each in found.shortfalls] == ["Limit", "Quota"]
    assert not found.never


def test_later_pod_sets_find_what_earlier_ones_left() -> None:
    queue = cluster_queue(flavors={"a": {GPU: "8"}})
    found = assigned(queue, pod_set("launcher", count=1), pod_set("node", count=4))
    (short,) = found.shortfalls
    assert (short.pod_set, str(short.need), str(short.available)) == ("node", "10", "8")
    assert found.flavors == {"launcher": ("a",)}


def test_a_resource_without_quota_is_told() -> None:
    (short,) = assigned(cluster_queue(), pod_set(count=1, requests={GPU: "1", "example.com/fpga": "1"})).shortfalls
    assert (short.lack, short.resource, short.flavor) == ("Uncovered", "example.com/fpga", "")
    assert assigned(cluster_queue(), pod_set(count=1, requests={GPU: "1", "example.com/fpga": "0"})).fits


def test_quota_of_pods_counts_pods() -> None:
    queue = cluster_queue(flavors={"a": {GPU: "100", "pods": "3"}})
    assert assigned(queue, pod_set(count=3)).usage[FlavorResource("a", "pods")] == Quantity.of(3)
    assert [each.resource for each in assigned(queue, pod_set(count=4)).shortfalls] == ["pods"]


@pytest.mark.parametrize(
    ("spec", "pods", "why"),
    [
        ({"nodeTaints": [{"key": "t", "value": "v", "effect": "NoSchedule"}]}, {}, "taint t=v:NoSchedule"),
        ({"nodeLabels": {"zone": "x"}}, {"nodeSelector": {"zone": "y"}}, "zone=x"),
    ],
)
def test_a_flavor_that_pods_do_not_match_is_told(spec: Tree, pods: Tree, why: str) -> None:
    found = assigned(cluster_queue(), pod_set(count=1, **pods), flavors=[flavor("a", **spec)])
    assert found.never
    assert found.shortfalls[0].lack == "Mismatch"
    assert why in found.shortfalls[0].detail


def test_a_flavor_s_own_tolerations_count() -> None:
    taint = {"key": "t", "value": "v", "effect": "NoSchedule"}
    tolerant = flavor("a", nodeTaints=[taint], tolerations=[{"key": "t", "operator": "Exists"}])
    assert assigned(cluster_queue(), pod_set(count=1), flavors=[tolerant]).fits


def test_a_flavor_that_does_not_exist_is_told() -> None:
    (short,) = assigned(cluster_queue(), pod_set(count=1), flavors=[]).shortfalls
    assert short.detail == "the ResourceFlavor does not exist"


def test_topologies_and_flavors_go_together() -> None:
    queue = cluster_queue(flavors=TWO)
    plain, racks = flavor("a"), flavor("b", topologyName="racks")
    close = {**pod_set(count=1), "topologyRequest": {"required": "rack"}}
    assert assigned(queue, pod_set(count=1), flavors=[plain, racks]).flavors == {"node": ("a",)}
    assert assigned(queue, close, flavors=[plain, racks]).flavors == {"node": ("b",)}
    everywhere = [flavor("a", topologyName="racks"), racks]
    assert assigned(queue, pod_set(count=1), flavors=everywhere).fits, "where all have one, nobody needs to ask"


def test_pod_sets_of_a_group_get_one_flavor() -> None:
    grouped = {"podSetGroupName": "both"}
    sets = [{**pod_set(name, count=2), "topologyRequest": grouped} for name in ("leader", "node")]
    assert assigned(cluster_queue(flavors=TWO), *sets).flavors == {"leader": ("b",), "node": ("b",)}


def test_where_borrowing_is_the_last_resort_a_flavor_of_one_s_own_is_preferred() -> None:
    other = cluster_queue("other", flavors={"a": {GPU: "8"}, "b": {GPU: "0"}}, cohortName="c")
    eager = cluster_queue(flavors=TWO, cohortName="c")
    patient = cluster_queue(flavors=TWO, cohortName="c", flavorFungibility={"whenCanBorrow": "TryNextFlavor"})
    assert assigned(eager, pod_set(count=3), others=[other]).flavors == {"node": ("a",)}
    assert assigned(patient, pod_set(count=3), others=[other]).flavors == {"node": ("b",)}


@given(st.integers(0, 20), st.integers(0, 20), st.integers(1, 12), st.integers(1, 4))
def test_less_fits_where_more_fits(nominal: int, used: int, count: int, each: int) -> None:
    queue = cluster_queue(flavors={"a": {GPU: str(nominal)}}, used=str(used))
    pods = pod_set(count=count, requests={GPU: str(each)})
    found = assigned(queue, pods, flavors=[flavor("a")])
    assert found.fits == (count * each <= nominal - used)
    assert found.never == (count * each > nominal)
    if found.fits and count > 1:
        assert assigned(queue, {**pods, "count": count - 1}, flavors=[flavor("a")]).fits
