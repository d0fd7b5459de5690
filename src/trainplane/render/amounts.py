"""Amounts written as the API server writes them: `1000m` becomes `1`, and `2` without quotes `"2"`.

Go's types do it to every quantity that passes through them, so JobSet's webhook would do it to ours. An amount that is
written otherwise makes each apply look like a change: the JobSet gets a new generation, and its controller new work.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from trainplane.api.errors import QuantityError
from trainplane.api.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.api.tree import Tree

Places: TypeAlias = "Mapping[str, Places | None]"
"""Where amounts stand: fields of an object, or of the objects of a list; None is an amount, `*` is any field."""

_RESOURCES: Final[Places] = {"resources": {"requests": {"*": None}, "limits": {"*": None}}}
_FIELD: Final[Places] = {"resourceFieldRef": {"divisor": None}}
_CONTAINER: Final[Places] = {**_RESOURCES, "env": {"valueFrom": _FIELD}}
_DOWNWARD: Final[Places] = {"downwardAPI": {"items": _FIELD}}
_VOLUME: Final[Places] = {
    **_DOWNWARD,
    "projected": {"sources": _DOWNWARD},
    "emptyDir": {"sizeLimit": None},
    "ephemeral": {"volumeClaimTemplate": {"spec": _RESOURCES}},
}
POD: Final[Places] = {
    **_RESOURCES,
    "overhead": {"*": None},
    "containers": _CONTAINER,
    "initContainers": _CONTAINER,
    "ephemeralContainers": _CONTAINER,
    "volumes": _VOLUME,
}
JOBSET_SPEC: Final[Places] = {
    "replicatedJobs": {"template": {"spec": {"template": {"spec": POD}}}},
    "volumeClaimPolicies": {"templates": {"spec": _RESOURCES}},
}
"""Every quantity of JobSet v1alpha2, but for a claim's status."""


MOST_AMOUNTS: Final = 2048
"""Amounts of one JobSet: forty times what a large one has. Each is read, added up and written anew, which takes as long
as a hundred other values."""


def count_amounts(spec: Tree, places: Places = JOBSET_SPEC) -> int:
    """Return how many amounts a JobSet's spec has, without reading one."""
    found = 0
    for name in spec if "*" in places else places.keys() & spec.keys():
        within = places.get(name, places.get("*"))
        if within is None:
            found += 1
            continue
        held: Any = spec[name]
        for entry in held if isinstance(held, list) else (held,):
            if isinstance(entry, dict):
                found += count_amounts(entry, within)
    return found


def write_amounts(spec: Tree, places: Places = JOBSET_SPEC) -> None:
    """Write every amount of a JobSet's spec as the API server does, in place; what is no quantity stays as it is."""
    for name in spec if "*" in places else places.keys() & spec.keys():
        within = places.get(name, places.get("*"))
        if within is None:
            with contextlib.suppress(QuantityError):
                spec[name] = str(Quantity.of(spec[name]))
            continue
        held: Any = spec[name]
        for entry in held if isinstance(held, list) else (held,):
            if isinstance(entry, dict):
                write_amounts(entry, within)
