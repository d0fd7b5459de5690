"""Room: whether a pod asks for more than any node has, so that waiting does not help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import tree as trees
from trainplane.api.errors import QuantityError
from trainplane.api.quantity import ZERO, parse
from trainplane.explain.cleaning import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.api.quantity import Quantity
    from trainplane.api.tree import Tree


def name_excess(pod: Tree, nodes: Sequence[Tree]) -> str:
    """Return of what a pod asks for more than the largest node has; empty if one has it all, or no node is known."""
    if not nodes:
        return ""
    seen = f"of {len(nodes)} nodes" if len(nodes) > 1 else "node"
    told = []
    for resource, asked in sorted(_requests(pod).items()):
        largest = max(_amount(trees.get(node, "status", "allocatable", resource)) for node in nodes)
        if asked > largest:
            called = clean(resource, 128)
            has = f"the largest {seen} has {largest}" if largest > ZERO else "no node has any"
            told.append(f"it asks for {asked} {called}, and {has}")
    return "; ".join(told)


def _requests(pod: Tree) -> dict[str, Quantity]:
    """Return what a pod's containers ask for together; a limit without a request asks for as much."""
    found: dict[str, Quantity] = {}
    for container in trees.entries(pod, "spec", "containers"):
        resources = trees.fields(container, "resources")
        asked = {**trees.fields(resources, "limits"), **trees.fields(resources, "requests")}
        for resource, amount in asked.items():
            found[str(resource)] = found.get(str(resource), ZERO) + _amount(amount)
    return found


def _amount(value: object) -> Quantity:
    """Return an amount; none for what is none."""
    try:
        return parse(str(value)) if isinstance(value, str | int) else ZERO
    except QuantityError:
        return ZERO
