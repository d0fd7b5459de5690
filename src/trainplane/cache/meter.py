"""What a worker counts, and how Prometheus reads it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow.flight as fl

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind: TypeAlias = Literal["counter", "gauge"]


@dataclass(frozen=True)
class Sample:
    """One figure."""

    name: str
    """Without `trainplane_cache_`."""
    kind: Kind
    help: str
    value: float


def exposition(samples: Iterable[Sample]) -> str:
    """Return figures as Prometheus reads them."""
    lines = []
    for sample in samples:
        name = f"trainplane_cache_{sample.name}"
        lines += [f"# HELP {name} {sample.help}", f"# TYPE {name} {sample.kind}", f"{name} {sample.value:.17g}"]
    return "\n".join([*lines, ""])


class Meter(fl.ServerMiddlewareFactory):  # type: ignore[misc] # pyarrow has no types
    """Counts the calls for rows that a server answers; `call` is told when each has ended."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self.blocks = self.bytes = self.failures = self.streams = self.waiting = 0

    def start_call(self, info: Any, headers: Any) -> _Call | None:
        """Follow a call, if it is one for rows."""
        del headers
        return _Call(self) if info.method == fl.FlightMethod.DO_GET else None

    def began(self) -> None:
        """Count a call."""
        with self._lock:
            self.streams += 1

    def answered(self, context: Any, blocks: int, size: int) -> None:
        """Count what is sent from now on, block by block, until the call that `context` is of has ended."""
        call = context.get_middleware("meter")
        with self._lock:
            self.blocks += blocks
            self.bytes += size
            if call is not None:
                self.waiting += size
                call.size = size

    def ended(self, size: int, *, failed: bool) -> None:
        """Count the end of a call."""
        with self._lock:
            self.streams -= 1
            self.waiting -= size
            self.failures += failed

    @property
    def samples(self) -> list[Sample]:
        """The figures as they stand."""
        return [
            Sample("served_blocks_total", "counter", "Blocks that clients were answered with.", self.blocks),
            Sample("served_bytes_total", "counter", "Bytes of those blocks, by their rows.", self.bytes),
            Sample("failures_total", "counter", "Calls for rows that ended with an error.", self.failures),
            Sample("clients", "gauge", "Calls for rows that are under way.", self.streams),
            Sample("waiting_bytes", "gauge", "Bytes of calls that are under way.", self.waiting),
        ]


class _Call(fl.ServerMiddleware):  # type: ignore[misc] # pyarrow has no types
    """One call for rows."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self._meter = meter
        self.size = 0
        meter.began()

    def call_completed(self, exception: Any) -> None:
        """Count the end of the call."""
        self._meter.ended(self.size, failed=exception is not None)
