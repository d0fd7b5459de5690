"""What the steps of a fleet's script say, wherever they are played: on engines (`recorder`) or on models (`replay`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tests.simulation.fleet.history import HUB
from tests.simulation.playing import counted, ended

if TYPE_CHECKING:
    from trainplane.kube.testing.storage import Tree


class FleetVerbs(ABC):
    """What users, operators and administrators do to TrainJobs; those return False whose write was not taken."""

    # -- users, and operators

    @abstractmethod
    def create(self, name: str, pods: int) -> None:
        """Create a TrainJob at the hub."""

    def recreate(self, name: str, pods: int) -> None:
        """Delete a TrainJob at the hub, and create another of its name at once."""
        self.delete(name)
        self.create(name, pods)

    def delete(self, name: str) -> None:
        """Delete a TrainJob at the hub."""
        self.drop_job(name, HUB)

    def suspend(self, name: str) -> bool:
        """Hold a TrainJob back at the hub."""
        return self._change(name, HUB, "spec", {"suspend": True})

    def resume(self, name: str) -> bool:
        """Let a TrainJob run at the hub."""
        return self._change(name, HUB, "spec", {"suspend": False})

    def count(self, name: str, worker: str, active: int) -> bool:
        """Count Jobs of a copy as active."""
        return self._change(name, worker, "status", counted(active))

    def finish(self, name: str, worker: str, kind: str) -> bool:
        """End a copy."""
        return self._change(name, worker, "status", ended(kind, self._stamp()))

    def say(self, name: str, kind: str) -> bool:
        """Say something of a TrainJob at the hub."""
        return self._change(name, HUB, "status", {"conditions": ended(kind, self._stamp())["conditions"]})

    @abstractmethod
    def drop_job(self, name: str, cluster: str) -> bool:
        """Delete a TrainJob on a cluster."""

    @abstractmethod
    def _change(self, name: str, cluster: str, part: str, fields: Tree) -> bool:
        """Give fields of a TrainJob's spec or status other values."""

    @abstractmethod
    def _stamp(self) -> str:
        """Return the time as objects have it."""

    # -- administrators

    def deactivate(self, name: str) -> None:
        """Let the hub's Workload have no quota."""
        self._activate(name, active=False)

    def activate(self, name: str) -> None:
        """Let it have some again."""
        self._activate(name, active=True)

    @abstractmethod
    def _activate(self, name: str, *, active: bool) -> None:
        """Write `spec.active` of the hub's Workload."""
