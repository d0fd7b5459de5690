"""Shapes on nodes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.hub.pending_world import GPU, flavor, node, pod_set
from trainplane.hub.pending.nodes import affinity_allows, fit, selects, tolerates, untolerated

Tree = dict[str, Any]

TAINT = {"key": "team", "value": "other", "effect": "NoSchedule"}


def template(**spec: Any) -> Tree:
    found: Tree = pod_set(**spec)["template"]
    return found


def container(**requests: str) -> Tree:
    return {"name": "c", "resources": {"requests": requests}}


@given(st.integers(0, 5), st.integers(1, 9), st.integers(0, 40))
def test_empty_nodes_carry_as_many_pods_as_their_scarcest_resource_allows(nodes: int, each: int, has: int) -> None:
    found = fit([node(gpu=str(has)) for _ in range(nodes)], template(requests={GPU: str(each), "cpu": "1"}))
    assert found.pods == nodes * min(32, 110, has // each)
    assert found.matching == (nodes if has >= each else 0)
    assert found.nodes == nodes


def test_the_number_of_pods_of_a_node_is_a_resource_too() -> None:
    assert fit([node(pods="3")], template(requests={"cpu": "1m"})).pods == 3
    assert fit([node(pods="0")], template(requests={"cpu": "1m"})).refusals == ("1 of 1: it takes no pods",)


def test_what_a_pod_does_not_ask_for_does_not_count() -> None:
    assert fit([node(gpu="0")], template(requests={GPU: "0", "cpu": "16"})).pods == 2


def test_refusals_are_counted_the_most_frequent_first() -> None:
    nodes = [node("a", gpu="4"), node("b", gpu="4"), node("c", taints=[TAINT]), node("d")]
    nodes[3]["spec"]["unschedulable"] = True
    found = fit(nodes, template(requests={GPU: "8"}))
    assert found.pods == 0
    assert found.refusals == (
        f"2 of 4: 4 {GPU} allocatable, 8 wanted",
        "1 of 4: taint team=other:NoSchedule is not tolerated",
        "1 of 4: it is cordoned",
    )


def test_a_flavor_adds_its_labels_and_tolerations() -> None:
    nodes = [node("a", labels={"rack": "1"}, taints=[TAINT]), node("b", labels={"rack": "1"}), node("c")]
    racks = flavor(nodeLabels={"rack": "1"})
    assert fit(nodes, template(requests={GPU: "8"}), racks).pods == 1
    tolerant = flavor(nodeLabels={"rack": "1"}, tolerations=[{"key": "team", "operator": "Exists"}])
    assert fit(nodes, template(requests={GPU: "8"}), tolerant).pods == 2
    assert fit(nodes, template(requests={GPU: "8"})).pods == 2


def test_node_selector_and_affinity_exclude_nodes() -> None:
    nodes = [node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"})]
    assert fit(nodes, template(requests={GPU: "8"}, nodeSelector={"zone": "x"})).pods == 1
    term = {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["x", "y"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    found = fit(nodes, template(requests={GPU: "8"}, affinity={"nodeAffinity": required}))
    assert found.refusals == ("2 of 2: the pod's node affinity excludes it",)


@pytest.mark.parametrize(
    ("toleration", "covered"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "team", "operator": "Exists"}, True),
        ({"key": "team", "value": "other"}, True),
        ({"key": "team", "value": "ours"}, False),
        ({"key": "team", "value": "other", "effect": "NoExecute"}, False),
        ({"key": "team", "value": "other", "effect": "NoSchedule"}, True),
        ({"key": "else", "operator": "Exists"}, False),
        ({"value": "other"}, False),
    ],
)
def test_tolerations(toleration: Tree, covered: bool) -> None:
    assert tolerates([toleration], TAINT) is covered
    assert untolerated([TAINT], [toleration]) == (None if covered else TAINT)


def test_a_taint_that_only_prefers_keeps_nobody_away() -> None:
    assert untolerated([{**TAINT, "effect": "PreferNoSchedule"}], []) is None


@pytest.mark.parametrize(
    ("operator", "values", "allowed"),
    [
        ("In", ["4", "5"], True),
        ("In", ["5"], False),
        ("NotIn", ["5"], True),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("Gt", ["3"], True),
        ("Gt", ["4"], False),
        ("Lt", ["5"], True),
        ("Lt", ["x"], False),
        ("Near", ["4"], False),
    ],
)
def test_affinity_operators(operator: str, values: list[str], allowed: bool) -> None:
    term = {"matchExpressions": [{"key": "size", "operator": operator, "values": values}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    assert affinity_allows({"affinity": affinity}, {"size": "4"}) is allowed


def test_terms_of_an_affinity_are_alternatives() -> None:
    terms = [{"matchExpressions": [{"key": "size", "operator": "In", "values": [size]}]} for size in ("1", "4")]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    assert affinity_allows({"affinity": affinity}, {"size": "4"})
    assert not affinity_allows({"affinity": affinity}, {"size": "2"})


def test_a_flavor_is_asked_only_for_the_labels_it_knows() -> None:
    spec = {"nodeSelector": {"zone": "x", "disk": "fast"}}
    assert affinity_allows(spec, {"zone": "x"}, keys=["zone"])
    assert not affinity_allows(spec, {"zone": "y"}, keys=["zone"])
    assert not affinity_allows(spec, {"zone": "x"})
    other = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [other]}}}
    assert affinity_allows({"affinity": affinity}, {"zone": "x"}, keys=["zone"])


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"a": "b"}}, True),
        ({"matchLabels": {"a": "c"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}, True),
        ({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "z", "operator": "Exists"}]}, False),
    ],
)
def test_label_selectors(selector: Tree | None, chosen: bool) -> None:
    assert selects(selector, {"a": "b"}) is chosen
