"""What clients of the reference's cache say and expect: shares by rank, and rows named by a pair of numbers.

`GetFlightInfo` with the path `[rank, world]` means rows `rank * per` up to `per` more, where `per` is the rows over the
world, rounded up; a rank beyond the last row is refused. A pair of rows is written in bincode: the first and the last
one, both included, each in as few bytes as it needs.
"""

from __future__ import annotations

import struct
from typing import Final

from trainplane.cache.errors import DeniedError, InvalidError, PartitionError

_WIDTHS: Final = {251: "<H", 252: "<I", 253: "<Q"}
_LARGEST: Final = 18
"""Bytes of a pair at most."""


def share(path: list[str], total: int) -> tuple[int, int]:
    """Return the rows of a rank: from, and up to."""
    try:
        rank, world = map(_number, path)
    except ValueError:
        raise InvalidError(f"the path {path!r} is not [rank, world]"[:200], "give two whole numbers") from None
    each = -(-total // world) if world else 0
    start, stop = rank * each, min((rank + 1) * each, total)
    if rank >= world or start >= stop:
        raise PartitionError(f"Invalid partition range: rank {rank} of {world} has none of {total} rows")
    return start, stop


def pair(start: int, stop: int) -> bytes:
    """Return rows from, and up to, as the reference writes them."""
    return _varint(start) + _varint(stop - 1)


def rows(ticket: bytes) -> tuple[int, int] | None:
    """Return which rows a ticket of the reference's kind asks for: from, and up to; None where it is no such ticket."""
    if len(ticket) > _LARGEST:
        return None
    numbers: list[int] = []
    at = 0
    while at < len(ticket) and len(numbers) < 2:
        width = _WIDTHS.get(ticket[at])
        if width is None:
            numbers.append(ticket[at])
            at += 1
            continue
        end = at + 1 + struct.calcsize(width)
        if end > len(ticket):
            return None
        numbers.append(struct.unpack_from(width, ticket, at + 1)[0])
        at = end
    if len(numbers) != 2 or at != len(ticket) or pair(numbers[0], numbers[1] + 1) != ticket:
        return None
    if numbers[0] > numbers[1]:
        raise DeniedError("a ticket for rows that end before they begin")
    return numbers[0], numbers[1] + 1


def _varint(number: int) -> bytes:
    if number < min(_WIDTHS):
        return bytes([number])
    for mark, width in _WIDTHS.items():
        if number < 1 << 8 * struct.calcsize(width):
            return bytes([mark]) + struct.pack(width, number)
    raise InvalidError(f"{number} is no number of a row")


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ValueError(text)
    return int(text)
