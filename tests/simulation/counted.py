"""What is counted in a run at scale: requests, events and bytes where they pass, and a phase as the difference."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from tests.simulation.apiserver import ApiServer
from tests.simulation.meter import MODELS, PROBE
from tests.simulation.people import EVENTS
from tests.simulation.wire import Link
from trainplane.kube.testing.verbs import target_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from tests.simulation.apiserver import Record
    from tests.simulation.meter import Meter
    from tests.simulation.wire import Answer, Stream
    from trainplane.kube.testing.storage import Collection, Tree

NO_WORK = ("leases", "events")
"""Resources whose writes are not the work on TrainJobs."""


class CountingServer(ApiServer):
    """An API server that counts what its watches send, and whose own work is not the replicas'."""

    def __init__(self, storage: Record, meter: Meter) -> None:
        super().__init__(storage)
        self._meter = meter
        self.events = 0
        self.event_bytes = 0

    def aside(self) -> AbstractContextManager[object]:
        """Count as the models' work."""
        return self._meter.aside()

    def line(self, kind: str, obj: Tree, collection: Collection) -> bytes:
        """Return a watch event, and count it."""
        line = super().line(kind, obj, collection)
        self.events += 1
        self.event_bytes += len(line)
        return line

    def forget(self, revision: int) -> None:
        """Forget the history up to a revision, and all Events: nobody reads those here, and they live for an hour."""
        self.storage.compact(revision)
        self._lines.clear()
        self.storage.objects.pop(EVENTS, None)


@dataclass
class CountingLink(Link):
    """A link that counts requests by method and resource."""

    requests: Counter[str] = field(default_factory=Counter)

    async def send(
        self, method: str, path: str, body: bytes | None, content_type: str | None, accept: str | None = None
    ) -> Answer | Stream:
        """Count, and send."""
        path_only, _, query = path.partition("?")
        target = target_of(unquote(path_only))
        what = path_only if target is None else target.collection.plural
        status = "/status" if target is not None and target.subresource == "status" else ""
        self.requests[f"{'WATCH' if 'watch=' in query else method} {what}{status}"] += 1
        return await super().send(method, path, body, content_type, accept)


def writes(requests: Mapping[str, float]) -> float:
    """Return how many of these requests write TrainJobs or what they own."""
    return sum(
        count for what, count in requests.items() if not (what.startswith(("GET", "WATCH")) or what.endswith(NO_WORK))
    )


class Reading(NamedTuple):
    """All counters at a moment."""

    at: float
    cpu: dict[str, float]
    requests: Counter[str]
    events: int
    event_bytes: int
    reconciles: int
    revision: int
    probes: int


class Phase(NamedTuple):
    """A part of a run, about so many TrainJobs, between two readings."""

    name: str
    jobs: int
    before: Reading
    after: Reading

    @property
    def seconds(self) -> float:
        """Virtual seconds that it lasted."""
        return self.after.at - self.before.at

    @property
    def cpu(self) -> dict[str, float]:
        """Milliseconds of CPU per TrainJob, by whose they are."""
        before, after = self.before.cpu, self.after.cpu
        return {who: 1000 * (seconds - before.get(who, 0.0)) / self.jobs for who, seconds in sorted(after.items())}

    @property
    def operator_cpu(self) -> float:
        """The same of all replicas together, with their reviews."""
        return sum(each for who, each in self.cpu.items() if who not in {MODELS, PROBE})

    @property
    def probes(self) -> float:
        """The same in probes that were made meanwhile: a machine that is slow for a while is so for both."""
        one = self.cpu[PROBE] * self.jobs / (self.after.probes - self.before.probes)
        return self.operator_cpu / one

    @property
    def requests(self) -> dict[str, float]:
        """Requests per TrainJob, by method and resource."""
        sent = self.after.requests - self.before.requests
        return {what: count / self.jobs for what, count in sorted(sent.items())}

    def row(self) -> dict[str, Any]:
        """Return the phase as a row of a report: all figures but the time are per TrainJob."""
        each = {
            "requests": sum(self.requests.values()),
            "writes": writes(self.requests),
            "events": (self.after.events - self.before.events) / self.jobs,
            "event_bytes": (self.after.event_bytes - self.before.event_bytes) / self.jobs,
            "reconciles": (self.after.reconciles - self.before.reconciles) / self.jobs,
            "changes": (self.after.revision - self.before.revision) / self.jobs,
            "cpu_ms": self.operator_cpu,
            **{f"cpu_ms_{who}": value for who, value in self.cpu.items() if who != PROBE},
        }
        rounded = {name: round(value, 3) for name, value in each.items()}
        return {"phase": self.name, "jobs": self.jobs, "virtual_s": round(self.seconds, 1), **rounded}
