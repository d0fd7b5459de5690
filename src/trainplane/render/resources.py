"""How many processors and accelerators a container has.

Kubernetes knows devices by the names that their vendors gave them:

| device        | names                                                                               |
|---------------|-------------------------------------------------------------------------------------|
| GPU           | any with `gpu` in it: `nvidia.com/gpu`, `amd.com/gpu`, `gpu.intel.com/xe`           |
| part of a GPU | `nvidia.com/mig-1g.5gb`, `nvidia.com/gpu.shared`, `amd.com/cpx_nps4`                |
| TPU           | `google.com/tpu`                                                                    |
| Neuron        | `aws.amazon.com/neuron`, `aws.amazon.com/neuroncore`, `aws.amazon.com/neurondevice` |
| Gaudi         | `habana.ai/gaudi`                                                                   |

A share of a device (`gpu-memory`, `gpucores`, `gpu.intel.com/millicores`) is a measure, not a device.

An amount that is no quantity raises QuantityError, which names the resource.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from trainplane.api.errors import QuantityError
from trainplane.api.quantity import ZERO, Quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trainplane.api.jobset import Container
    from trainplane.api.tree import Tree

_GPU: Final = re.compile(r"gpu|^nvidia\.com/mig-|^amd\.com/[sdqc]px_nps[1248]$", re.IGNORECASE)
_SHARE: Final = re.compile(r"mem|cores|percent|monitoring|tiles", re.IGNORECASE)
_OTHER_DEVICES: Final = frozenset(
    {
        "google.com/tpu",
        "aws.amazon.com/neuron",
        "aws.amazon.com/neuroncore",
        "aws.amazon.com/neurondevice",
        "habana.ai/gaudi",
    }
)


def gpus(container: Container) -> int:
    """Return how many GPUs a container asks for, parts of GPUs too: by its requests, else by its limits.

    Several kinds add up.
    """
    return _count(container, _is_gpu)


def accelerators(container: Container) -> int:
    """Return how many devices a container asks for that a process each can drive: GPUs, TPUs, Neuron, Gaudi."""
    return _count(container, lambda name: _is_gpu(name) or name in _OTHER_DEVICES)


def cpus(container: Container) -> int:
    """Return how many processors a container asks for, begun ones counted whole: by its requests, else its limits."""
    return _quantity(container.requests, "cpu").value() or _quantity(container.limits, "cpu").value()


def over_limit(container: Container) -> Iterator[tuple[str, str, str]]:
    """Yield each resource that a container requests more of than its limit allows, with request and limit.

    Those that are `uneven` whichever is more are not among them.
    """
    requests, limits = container.requests, container.limits
    for name, limit in limits.items():
        if not must_be_equal(name) and name in requests and _quantity(requests, name) > _quantity(limits, name):
            yield name, str(requests[name]), str(limit)


def uneven(container: Container) -> Iterator[tuple[str, str, str]]:
    """Yield each resource of which a container requests another amount than its limit and must not, with both."""
    requests, limits = container.requests, container.limits
    for name, request in requests.items():
        if must_be_equal(name) and (name not in limits or _quantity(requests, name) != _quantity(limits, name)):
            yield name, str(request), str(limits.get(name, "nothing"))


def must_be_equal(name: str) -> bool:
    """Tell if a pod's request of a resource must equal its limit: Kubernetes promises no device twice, nor huge page."""
    domain, slash, _ = name.partition("/")
    is_device = bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")
    return is_device or name.startswith("hugepages-")


def _is_gpu(name: str) -> bool:
    return bool(_GPU.search(name)) and not _SHARE.search(name.rpartition("/")[2])


def _count(container: Container, is_meant: Callable[[str], bool]) -> int:
    def total(amounts: Tree) -> int:
        return sum(_quantity(amounts, name).value() for name in amounts if is_meant(name))

    return total(container.requests) or total(container.limits)


def _quantity(amounts: Tree, name: str) -> Quantity:
    given = amounts.get(name)
    if given is None:
        return ZERO
    try:
        return Quantity.of(given)
    except QuantityError as error:
        raise QuantityError(f"{name}: {error}") from error
