"""Numbers over time, drawn in cells; and bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.cli.live.cells import UNICODE, Glyphs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    Points = Sequence[tuple[datetime, float]]


def chart(points: Points, width: int, height: int, glyphs: Glyphs = UNICODE) -> list[str]:
    """Return `height` rows of `width` cells, the upper first: time from left to right, the last value of each cell.

    The lowest value still shows, and one that never changes stands in the middle. Values are finite, however large.
    """
    values = _sampled(points, width)
    if not values:
        return [" " * width] * height
    low, high = min(values), max(values)
    top = len(glyphs.levels) - 1
    steps = top * height
    heights = [1 + round(_share(value, low, high) * (steps - 1)) for value in values]
    return [
        "".join(glyphs.levels[max(0, min(top, tall - row * top))] for tall in heights).ljust(width)
        for row in reversed(range(height))
    ]


def bar(share: float, width: int) -> int:
    """Return how many of `width` cells are full: all of them only where the share is whole, none where it is nothing.

    A bar that is not full is not drawn full, and one of a little shows a little.
    """
    share = max(0.0, min(1.0, share))
    cells = round(share * width)
    if 0 < share < 1 and width > 1:
        return max(1, min(width - 1, cells))
    return cells


def _sampled(points: Points, width: int) -> list[float]:
    """Return the values in time: one for each cell between the first and the last point, fewer if there are fewer."""
    if not points or width <= 0:
        return []
    began = points[0][0]
    span = (points[-1][0] - began).total_seconds()
    if span <= 0 or len(points) == 1:
        return [points[-1][1]]
    cells = min(width, max(len(points), width // 2))
    found: list[float] = []
    place = 0
    for number in range(cells):
        until = span * (number + 1) / cells
        while place + 1 < len(points) and (points[place + 1][0] - began).total_seconds() <= until:
            place += 1
        found.append(points[place][1])
    return found


def _share(value: float, low: float, high: float) -> float:
    """Return where a value lies between two others; halved first, as a difference may be more than a float holds."""
    span = high / 2 - low / 2
    return 0.5 if span <= 0 else (value / 2 - low / 2) / span
