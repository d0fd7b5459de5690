"""The last points of metrics, few enough to keep in an object: thinned evenly, with the first and the newest. Pure.

A metric keeps at most `POINTS` points. When there are more, every other one goes, and from then on only every second
report is kept, then every fourth: so the points stay evenly spread over the whole training however long it is. The
newest is always there, on top.
"""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

POINTS: Final = 64
"""Points of one metric: a curve on a screen needs no more."""
METRICS: Final = 12
"""Metrics of one TrainJob: the first that it reports. What they take is bounded whatever it reports."""
POINT_BYTES: Final = 15
"""Bytes of most points as they are written; with longer ones there are fewer."""
BYTES: Final = 4096
"""Bytes of all points of a TrainJob as they are written."""


class Kept(msgspec.Struct, frozen=True):
    """Series as they are written: points are pairs of seconds, since the first of all points, and value."""

    since: float = 0.0
    """When the first point was, in seconds since 1970."""
    every: int = 1
    """How many reports one kept point stands for."""
    metrics: dict[str, list[tuple[float, float]]] = {}


class Series:
    """The points of one TrainJob's metrics."""

    def __init__(self, kept: Kept | None = None) -> None:
        self._every = max(1, kept.every) if kept else 1
        self._count = 0
        self._points: dict[str, array[float]] = {}
        self._newest: dict[str, tuple[float, float]] = {}
        for name, points in list((kept.metrics if kept else {}).items())[:METRICS]:
            since = kept.since if kept else 0.0
            usable = [(since + at, value) for at, value in points if math.isfinite(since + at + value)][-POINTS:]
            if usable:
                self._points[name] = array("d", [number for point in usable[:-1] for number in point])
                self._newest[name] = usable[-1]
                self._count = max(self._count, len(usable) * self._every)

    def add(self, moment: float, values: Mapping[str, str]) -> None:
        """Add what a report says; what is no number is left out."""
        is_kept = self._count % self._every == 0
        self._count += 1
        for name, value in _numbers(values):
            if name not in self._points:
                if len(self._points) >= METRICS:
                    continue
                self._points[name] = array("d")
            before = self._newest.get(name)
            if before is not None and (is_kept or not self._points[name]):
                self._points[name].extend(before)
            self._newest[name] = (moment, value)
        if any(len(points) >= 2 * (POINTS - 1) for points in self._points.values()):
            self._every *= 2
            for name, points in self._points.items():
                self._points[name] = array(
                    "d", [number for at in range(0, len(points), 4) for number in points[at : at + 2]]
                )

    def points(self, name: str) -> list[tuple[float, float]]:
        """Return a metric's points, in order."""
        flat = self._points.get(name, array("d"))
        newest = [self._newest[name]] if name in self._newest else []
        return [(flat[at], flat[at + 1]) for at in range(0, len(flat), 2)] + newest

    def encode(self) -> bytes:
        """Return the series as JSON of `BYTES` at most: with many metrics each has fewer points."""
        points = {name: self.points(name) for name in self._newest}
        since = min((found[0][0] for found in points.values()), default=0.0)
        most = max(2, min(POINTS, BYTES // (POINT_BYTES * max(1, len(points)))))
        while True:
            metrics = {name: _spread(points[name], most, since) for name in self._newest}
            data = msgspec.json.encode(Kept(round(since), self._every, metrics))
            if len(data) <= BYTES:
                return data
            if most > 2:
                most //= 2
            else:
                self._newest.popitem()


def read(data: Any) -> Kept:
    """Return series that were written; nothing, if that is not what they are: a tenant may write them, too."""
    if not isinstance(data, str) or len(data) > 4 * BYTES:
        return Kept()
    try:
        return msgspec.json.decode(data, type=Kept)
    except (msgspec.MsgspecError, RecursionError):
        return Kept()


def _numbers(values: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    for name, text in values.items():
        try:
            number = float(text)
        except ValueError:
            continue
        if math.isfinite(number):
            yield name, number


def _spread(points: list[tuple[float, float]], most: int, since: float) -> list[tuple[float, float]]:
    """Return so many points at most, the first and the last among them, in whole seconds and five digits."""
    if len(points) > most:
        last = len(points) - 1
        points = [points[round(index * last / (most - 1))] for index in range(most)]
    return [(round(moment - since), float(f"{value:.5g}")) for moment, value in points]
