"""Resources of a node, by the short names that people use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import quantity
from trainplane.client.errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.api.tree import Tree

_SHORT: Final = {"gpu": "nvidia.com/gpu", "tpu": "google.com/tpu", "storage": "ephemeral-storage"}
_PLAIN: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_MIG: Final = "nvidia.com/mig-"


def write_resources(resources: Mapping[str, str | float]) -> Tree:
    """Return requests and limits, which are the same: a node of a job must not be promised what others take away.

    Raises:
        InvalidError: a name or an amount cannot mean anything.
    """
    amounts: dict[str, str] = {}
    for short, amount in resources.items():
        name = _name(short)
        if name in amounts:
            raise InvalidError(f"resources_per_node names {name} twice: as {short!r} and in full")
        amounts[name] = _amount(short, amount)
    slices = [name for name in amounts if name.startswith(_MIG)]
    if len(slices) > 1:
        raise InvalidError(
            f"resources_per_node asks for {' and '.join(slices)}: a node has MIG slices of one size only"
        )
    if slices and _SHORT["gpu"] in amounts:
        raise InvalidError(f"resources_per_node asks for whole GPUs and for {slices[0]}: choose one")
    return {"requests": dict(amounts), "limits": dict(amounts)}


def _name(short: str) -> str:
    """Return a resource's name as Kubernetes has it; names of devices keep their capitals."""
    if "/" in short or short.startswith("hugepages-"):
        return short
    lower = short.lower()
    if lower.startswith("mig-"):
        return _MIG + lower.removeprefix("mig-")
    name = _SHORT.get(lower, lower)
    if name in _PLAIN or name in _SHORT.values():
        return name
    known = ", ".join(sorted([*_PLAIN, *_SHORT]))
    raise InvalidError(
        f"resources_per_node[{short!r}] is no resource: use one of {known}, mig-PROFILE, hugepages-SIZE, or the full "
        f"name of a device, such as amd.com/gpu"
    )


def _amount(short: str, amount: object) -> str:
    if isinstance(amount, bool) or not isinstance(amount, str | int | float):
        raise InvalidError(f"resources_per_node[{short!r}] must be a number or a text such as '8Gi', and is {amount!r}")
    text = str(int(amount)) if isinstance(amount, float) and amount.is_integer() else str(amount)
    try:
        quantity.parse(text)
    except ValueError as error:
        raise InvalidError(f"resources_per_node[{short!r}]: {error}") from None
    return text
