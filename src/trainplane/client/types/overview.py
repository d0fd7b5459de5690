"""A cluster or a hub at a glance: jobs by phase, queues with their quota, workers, devices.

What the caller may not read is not empty but named, with why, in `unread`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


@dataclass(frozen=True)
class QuotaUse:
    """How much of one resource of one flavor a ClusterQueue has, and gave away."""

    flavor: str
    resource: str
    nominal: float
    """Its own, in the resource's base unit: bytes, cores, devices."""
    used: float
    """Reserved by Workloads, borrowed or its own."""

    @property
    def free(self) -> float:
        """What is left of its own; what it borrows may go beyond."""
        return max(0.0, self.nominal - self.used)


@dataclass(frozen=True)
class QueueUse:
    """A ClusterQueue."""

    name: str
    pending: int = 0
    """Workloads that wait."""
    admitted: int = 0
    is_active: bool = True
    """Whether it lets anybody go; `why` says why not."""
    why: str = ""
    cohort: str = ""
    """With whom it shares quota."""
    quotas: tuple[QuotaUse, ...] = ()


@dataclass(frozen=True)
class WorkerState:
    """A worker cluster of a hub, as MultiKueue sees it."""

    name: str
    is_connected: bool
    why: str = ""
    """Why it is not."""
    jobs: int | None = None
    """TrainJobs that it has and that are not over; None where there is no hub view to ask."""


@dataclass(frozen=True)
class DeviceUse:
    """One kind of device, on the nodes of the cluster that was asked."""

    resource: str
    """As nodes offer it: `nvidia.com/gpu`."""
    capacity: int
    """On nodes that are ready and take pods."""
    used: int = 0
    """Of these, asked for by pods that are there."""
    waiting: int = 0
    """Asked for by pods that have no node yet."""
    away: int = 0
    """On nodes that are not ready, or cordoned."""

    @property
    def idle(self) -> int:
        """What nobody asks for."""
        return max(0, self.capacity - self.used)


@dataclass(frozen=True)
class Concern:
    """A TrainJob that somebody may have to look at."""

    namespace: str
    name: str
    phase: str
    """Failed, Restarting, Pending or Queued."""
    since: datetime
    """When it failed; of others when they were created."""
    reason: str = ""
    queue: str = ""


@dataclass(frozen=True)
class Overview:
    """What `get_overview` returns."""

    jobs: Mapping[str, int] = field(default_factory=dict)
    """TrainJobs by phase: Running, Restarting, Pending, Queued, Suspended, Failed, Succeeded."""
    namespace: str | None = None
    """The one whose TrainJobs are counted; None: all."""
    concerns: tuple[Concern, ...] = ()
    """What failed, newest first; then what does not run, the longest first. At most 50 of each phase."""
    queues: tuple[QueueUse, ...] = ()
    """By name."""
    workers: tuple[WorkerState, ...] = ()
    """By name; empty where the cluster is no hub."""
    devices: tuple[DeviceUse, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    """What could not be read, and why."""
