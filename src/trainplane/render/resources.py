"""How many processors and accelerators a container has.

An amount that is no quantity raises QuantityError, which names the resource.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from trainplane.api.errors import QuantityError
from trainplane.api.quantity import ZERO, Quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.jobset import Container
    from trainplane.api.tree import Tree

_MIG: Final = "nvidia.com/mig-"


def gpus(container: Container) -> int:
    """Return how many GPUs a container asks for, MIG slices too: by its requests, else by its limits.

    A resource is a GPU if its name says so; several kinds add up.
    """
    return _sum_gpus(container.requests) or _sum_gpus(container.limits)


def cpus(container: Container) -> int:
    """Return how many processors a container asks for, begun ones counted whole: by its requests, else its limits."""
    return _quantity(container.requests, "cpu").value() or _quantity(container.limits, "cpu").value()


def over_limit(container: Container) -> Iterator[tuple[str, str, str]]:
    """Yield each resource that a container requests more of than its limit allows, with request and limit."""
    requests, limits = container.requests, container.limits
    for name, limit in limits.items():
        if name in requests and _quantity(requests, name) > _quantity(limits, name):
            yield name, str(requests[name]), str(limit)


def write_amounts(pod_spec: Tree) -> None:
    """Write every amount of a pod's resources as the API server does, in place.

    JobSet's webhook would do it anyway; an amount that is written otherwise makes each apply look like a change.
    """
    places: list[Tree] = [pod_spec.get("overhead") or {}]
    for container in (*(pod_spec.get("containers") or ()), *(pod_spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        places += [resources.get("requests") or {}, resources.get("limits") or {}]
    for amounts in places:
        for name, amount in amounts.items():
            with contextlib.suppress(QuantityError):
                amounts[name] = str(Quantity.of(amount))


def is_extended(name: str) -> bool:
    """Tell if Kubernetes takes a resource for a device of others', of which a pod's request and limit must be equal."""
    domain, slash, _ = name.partition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")


def _sum_gpus(amounts: Tree) -> int:
    return sum(_quantity(amounts, name).value() for name in amounts if "gpu" in name.lower() or name.startswith(_MIG))


def _quantity(amounts: Tree, name: str) -> Quantity:
    given = amounts.get(name)
    if given is None:
        return ZERO
    try:
        return Quantity.of(given)
    except QuantityError as error:
        raise QuantityError(f"{name}: {error}") from error
