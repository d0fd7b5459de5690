"""What computes in a container, by the resources it has: GPUs before other devices before processors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import tree as trees
from trainplane.client.types.runtimes import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Tree

_MIG: Final = re.compile(r"nvidia\.com/(mig-.+)")
_GPU: Final = re.compile(r"gpu|^amd\.com/[sdqc]px_nps[1248]$", re.IGNORECASE)
_SHARE: Final = re.compile(r"mem|cores|percent|monitoring|tiles", re.IGNORECASE)
_NAMES: Final = {
    "google.com/tpu": "tpu",
    "huawei.com/Ascend910": "npu",
    "aws.amazon.com/neuron": "neuron",
    "aws.amazon.com/neuroncore": "neuron",
    "aws.amazon.com/neurondevice": "neuron",
    "habana.ai/gaudi": "gaudi",
    "cpu": "cpu",
}


def read_devices(container: Tree | None) -> tuple[str, str]:
    """Return what computes in a container and how many of it: `("gpu", "4")`; both `Unknown` where nothing is said.

    Limits count before requests. Memory, network cards and shares of a device are no devices.
    """
    for group in ("limits", "requests"):
        amounts = trees.get(container, "resources", group)
        found = sorted(_devices(amounts if isinstance(amounts, dict) else {}))
        if found:
            _, device, amount = found[0]
            return device, _text(amount)
    return UNKNOWN, UNKNOWN


def _devices(amounts: Tree) -> Iterator[tuple[int, str, Any]]:
    for name, amount in amounts.items():
        if mig := _MIG.fullmatch(name):
            yield 1, mig[1], str(amount)
        elif _GPU.search(name) and not _SHARE.search(name):
            yield 0, "gpu", str(amount)
        elif name in _NAMES:
            yield 3 if name == "cpu" else 2, _NAMES[name], str(amount)


def is_device(resource: str) -> bool:
    """Return whether a resource is devices that compute, rather than processors, memory or a share of a device."""
    return any(device != "cpu" for _, device, _ in _devices({resource: ""}))


def _text(amount: str) -> str:
    """Return an amount without a fraction that is none: JSON numbers may come as `2.0`."""
    return amount.removesuffix(".0")
