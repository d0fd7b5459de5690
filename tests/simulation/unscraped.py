"""Metrics that nobody scrapes: our own code that counts is the real one, what it counts in forgets at once.

To declare some thirty families and bind their children is a twelfth of a history, for numbers that no judge looks at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from unittest import mock

from prometheus_client import CollectorRegistry

from tests.simulation.planting import returns
from trainplane.kube import metrics

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.kube.clock import Clock


class _Family:
    """A family and its children at once; only the number of its labels is looked at, as prometheus_client does."""

    def __init__(self, name: str, text: str, labels: tuple[str, ...], **_: Any) -> None:
        self._name = name
        self._labels = len(labels)

    def labels(self, *values: object) -> _Family:
        if len(values) != self._labels:
            raise ValueError(f"{self._name} has {self._labels} labels and was given {values}")
        return self

    def inc(self, amount: float = 1) -> None:
        """Count nothing."""

    def set(self, value: float) -> None:
        """Show nothing."""

    def observe(self, amount: float) -> None:
        """Measure nothing."""

    def set_function(self, function: Callable[[], float]) -> None:
        """Ask nobody."""


with mock.patch.multiple(metrics, Counter=_Family, Gauge=_Family, Histogram=_Family):
    _FAMILIES: Final = metrics._Families(CollectorRegistry())


class Unscraped(metrics.Metrics):
    """The runtime's metrics over families that keep nothing."""

    def __init__(self, clock: Clock) -> None:
        with (
            mock.patch.object(metrics, "_Families", returns(_FAMILIES)),
            mock.patch.object(metrics, "ProcessCollector", returns(None)),
        ):
            super().__init__(clock)
