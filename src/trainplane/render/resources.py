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

import contextlib
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
_PLAIN: Final = ("cpu", "memory", "ephemeral-storage")
_HUGE: Final = "hugepages-"
_MEANT: Final = {
    "gpu": "nvidia.com/gpu or amd.com/gpu",
    "gpus": "nvidia.com/gpu or amd.com/gpu",
    "tpu": "google.com/tpu",
    "cpus": "cpu",
    "mem": "memory",
    "ram": "memory",
    "storage": "ephemeral-storage",
    "disk": "ephemeral-storage",
}
"""Names that people write, and what Kubernetes calls it."""


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


def claims(container: Container) -> bool:
    """Return whether a container claims devices (dynamic resource allocation), of which no count is known here."""
    return bool(container.get("resources", "claims"))


def impossible(container: Container) -> Iterator[tuple[str, str, str]]:
    """Yield what no container may ask for: whether `limits` or `requests` say it, the resource, and why not.

    Amounts that are no quantities are the schema's to refuse.
    """
    if not container.limits and not container.requests:
        return
    limits, requests = _quantities(container.limits), _quantities(container.requests)
    for name, amount in {**requests, **limits}.items():
        problem = _no_amount(name, amount) or _lonely(name, {*limits, *requests})
        if problem:
            yield "limits" if name in limits else "requests", name, f"would have {amount} of {name}, {problem}"
    for name, request in requests.items():
        limit = limits.get(name)
        if must_be_equal(name):
            if request != limit:
                said = f"would request {request} of {name} and be limited to {'nothing' if limit is None else limit}"
                yield "requests", name, f"{said}, and of {name} Kubernetes wants both to be equal"
        elif limit is not None and request > limit:
            yield "requests", name, f"would request {request} of {name} and be limited to {limit}"


def _quantities(amounts: Tree) -> dict[str, Quantity]:
    found = {}
    for name, amount in amounts.items():
        with contextlib.suppress(QuantityError):
            found[name] = Quantity.of(amount)
    return found


def _no_amount(name: str, amount: Quantity) -> str:
    if "/" not in name and name not in _PLAIN and not name.startswith(_HUGE):
        meant = _MEANT.get(name.lower())
        known = f"did you mean {meant}?" if meant else f"it has {', '.join(_PLAIN)}, and devices as nvidia.com/gpu"
        return f"which Kubernetes does not know ({known})"
    if amount < ZERO:
        return "which is less than nothing"
    if _is_device(name) and Quantity.of(amount.value()) != amount:
        return "and a device is whole"
    return ""


def _lonely(name: str, beside: set[str]) -> str:
    return "and needs cpu or memory beside it" if name.startswith(_HUGE) and not beside & {"cpu", "memory"} else ""


def must_be_equal(name: str) -> bool:
    """Tell if a request of a resource must equal its limit: no device is promised twice, and no huge page."""
    return _is_device(name) or name.startswith(_HUGE)


def _is_device(name: str) -> bool:
    """Tell if a resource is another's than Kubernetes' own."""
    domain, slash, _ = name.partition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")


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
