"""What a pod needs of a node, as the scheduler counts it.

A limit without a request is a request. Containers and sidecars add up; an init container runs beside the sidecars
before it, and the pod needs the larger of both. What the pod itself says outranks the sum of its containers; overhead
is added.

An amount that is no quantity raises QuantityError, which names the resource.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from trainplane.api.errors import QuantityError
from trainplane.api.quantity import ZERO, Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.api.tree import Tree

Amounts: TypeAlias = dict[str, Quantity]


def pod_requests(spec: Tree) -> Amounts:
    """Return what a pod requests, by resource, in order of their names."""
    running: Amounts = {}
    for container in spec.get("containers") or ():
        add(running, _requests(container.get("resources") or {}))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec.get("initContainers") or ():
        wanted = _requests(container.get("resources") or {})
        if container.get("restartPolicy") == "Always":
            add(sidecars, wanted)
            for name in wanted:
                starting[name] = max(starting.get(name, ZERO), sidecars[name])
        else:
            for name, amount in wanted.items():
                starting[name] = max(starting.get(name, ZERO), sidecars.get(name, ZERO) + amount)
    add(running, sidecars)
    total = {name: max(running.get(name, ZERO), starting.get(name, ZERO)) for name in sorted({*running, *starting})}
    total |= _requests(spec.get("resources") or {})
    add(total, quantities(spec.get("overhead") or {}))
    return total


def add(total: Amounts, more: Mapping[str, Quantity], *, times: int = 1) -> None:
    """Add amounts to a total, in place."""
    for name, amount in more.items():
        total[name] = total.get(name, ZERO) + amount * times


def quantities(amounts: Tree) -> Amounts:
    """Return amounts as numbers."""
    return {name: _quantity(name, amount) for name, amount in amounts.items()}


def _requests(resources: Tree) -> Amounts:
    return quantities({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _quantity(name: str, amount: str | float) -> Quantity:
    try:
        return Quantity.of(amount)
    except QuantityError as error:
        raise QuantityError(f"{name}: {error}") from error
