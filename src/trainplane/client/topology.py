"""How many nodes a shape of devices needs."""

from __future__ import annotations

import math

from trainplane.client.errors import InvalidError


def get_tpu_num_nodes(num_slices: int, topology: str, chips_per_host: int = 4) -> int:
    """Return `num_nodes` for slices of TPUs.

    Args:
        num_slices: How many slices train together.
        topology: The chips of one slice, such as `4x4` or `2x2x4`.
        chips_per_host: The chips of one machine; 4 in most, 8 in some.

    Raises:
        InvalidError: a number is below 1, the topology has not two or three of them, or machines do not fill a slice.
    """
    for field, number in (("num_slices", num_slices), ("chips_per_host", chips_per_host)):
        if number < 1:
            raise InvalidError(f"{field} must be a number from 1 on, and is {number}")
    parts = topology.lower().split("x")
    if len(parts) not in {2, 3} or not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise InvalidError(
            f"topology must be two or three numbers from 1 on, such as 4x4 or 2x2x4, and is {topology!r}"
        )
    chips = math.prod(int(part) for part in parts)
    if chips < chips_per_host:
        return num_slices
    if chips % chips_per_host:
        raise InvalidError(f"topology {topology} has {chips} chips, which machines of {chips_per_host} do not fill")
    return num_slices * (chips // chips_per_host)
