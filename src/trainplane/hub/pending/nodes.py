"""Which nodes could carry a pod: its requests, node selector, affinity and tolerations against what nodes offer.

Kueue hands out quota, not nodes; a job whose shape no node has is admitted and then stays pending. What other pods
occupy is not counted here: this is about what can never be, not about what is busy now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainplane.api.quantity import Quantity
from trainplane.render.demand import pod_requests

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

Requests = Mapping[str, Quantity]
"""Amounts by the name of the resource."""

_EVICTING = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class NodeFit:
    """How many pods of one shape the nodes of a cluster could carry, were they empty."""

    nodes: int
    """All nodes."""
    matching: int
    """Nodes that could carry at least one pod."""
    pods: int
    """Pods that all of them together could carry."""
    refusals: tuple[str, ...]
    """Why the others cannot, each with the number of nodes, the most frequent first."""


def fit(nodes: Sequence[Tree], template: Tree, flavor: Tree | None = None) -> NodeFit:
    """Return how many pods of a template the nodes could carry, with what a flavor adds to the pods."""
    spec = template.get("spec") or {}
    added = (flavor or {}).get("spec") or {}
    selector = {**(spec.get("nodeSelector") or {}), **(added.get("nodeLabels") or {})}
    tolerations = [*(spec.get("tolerations") or ()), *(added.get("tolerations") or ())]
    requests = pod_requests(spec)
    matching = pods = 0
    refusals: Counter[str] = Counter()
    for node in nodes:
        refusal = _refusal(node, selector, spec, tolerations)
        if refusal is None:
            carried, refusal = _capacity(node, requests)
            matching += carried > 0
            pods += carried
        if refusal is not None:
            refusals[refusal] += 1
    told = tuple(f"{count} of {len(nodes)}: {why}" for why, count in refusals.most_common())
    return NodeFit(len(nodes), matching, pods, told)


def tolerates(tolerations: Iterable[Tree], taint: Tree) -> bool:
    """Return whether any toleration covers a taint."""
    return any(_covers(toleration, taint) for toleration in tolerations)


def untolerated(taints: Iterable[Tree], tolerations: Sequence[Tree]) -> Tree | None:
    """Return the first taint that keeps a pod away, or None."""
    kept_away = (t for t in taints if t.get("effect") in _EVICTING and not tolerates(tolerations, t))
    return next(kept_away, None)


def affinity_allows(spec: Tree, labels: Mapping[str, str], *, keys: Iterable[str] | None = None) -> bool:
    """Return whether a pod's node selector and required node affinity allow a node with these labels.

    With `keys`, only they are looked at: that is how Kueue matches pods with flavors, which know a few labels only.
    """
    known = None if keys is None else set(keys)
    selector = spec.get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items() if known is None or key in known):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = [
        [e for e in term.get("matchExpressions") or () if known is None or e.get("key") in known]
        for term in required.get("nodeSelectorTerms") or ()
    ]
    if not terms or (known is not None and not all(terms)):
        return True
    return any(term and all(_matches(expression, labels) for expression in term) for term in terms)


def selects(selector: Tree | None, labels: Mapping[str, str]) -> bool:
    """Return whether a label selector chooses an object; no selector chooses nothing, an empty one everything."""
    if selector is None:
        return False
    exact = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or ()
    return all(labels.get(key) == value for key, value in exact.items()) and all(
        _matches(expression, labels) for expression in expressions
    )


def _refusal(node: Tree, selector: Mapping[str, str], spec: Tree, tolerations: Sequence[Tree]) -> str | None:
    labels = node["metadata"].get("labels") or {}
    for key, value in selector.items():
        if labels.get(key) != value:
            return f"label {key}={value} is missing"
    if not affinity_allows({"affinity": spec.get("affinity")}, labels):
        return "the pod's node affinity excludes it"
    node_spec = node.get("spec") or {}
    taint = untolerated(node_spec.get("taints") or (), tolerations)
    if taint is not None:
        return f"taint {taint['key']}={taint.get('value', '')}:{taint['effect']} is not tolerated"
    return "it is cordoned" if node_spec.get("unschedulable") else None


def _capacity(node: Tree, requests: Requests) -> tuple[int, str | None]:
    """Return how many pods an empty node carries, and what it lacks for the first."""
    offered = (node.get("status") or {}).get("allocatable") or {}
    carried = Quantity.of(offered.get("pods") or 0).value()
    lacking = None if carried else "it takes no pods"
    for name, amount in requests.items():
        if amount.is_zero():
            continue
        has = Quantity.of(offered.get(name) or 0)
        times = has.nanos // amount.nanos
        if times == 0 and lacking is None:
            lacking = f"{has} {name} allocatable, {amount} wanted"
        carried = min(carried, times)
    return carried, lacking


def _covers(toleration: Tree, taint: Tree) -> bool:
    if toleration.get("effect") not in {None, "", taint.get("effect")}:
        return False
    exists = toleration.get("operator") == "Exists"
    if not toleration.get("key"):
        return exists
    same = toleration["key"] == taint.get("key")
    return same and (exists or (toleration.get("value") or "") == (taint.get("value") or ""))


def _matches(expression: Tree, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression.get("key") or "")
    values = expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return _compares(value, values, operator)
    return False


def _compares(value: str | None, values: Sequence[str], operator: str) -> bool:
    try:
        have, bound = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return have > bound if operator == "Gt" else have < bound
