"""A TrainJob as one reconcile meets it, and what the steps of that reconcile learn of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainplane.api.document import Document
    from trainplane.api.meta import ObjectMeta
    from trainplane.api.trainjob import TrainJob
    from trainplane.kube.resource import Key
    from trainplane.operator.lost import Mark, Place
    from trainplane.operator.stores import SeenJobSet


@dataclass(slots=True)
class Situation:
    """A TrainJob as one reconcile meets it."""

    key: Key
    job: Document[TrainJob]
    jobset: SeenJobSet | None
    digest: str
    """Of the runtime that it began with; empty until that is known."""
    is_new: bool = False
    """Whether it begins now: nothing of it can have been made before."""
    later: float | None = None
    """Seconds after which it should be met again, if something was put off."""
    mounts: bool = False
    """Whether a pod of it has a node and has not started: it mounts the TrainJob's keys just now."""
    awaits_keys: bool = False
    """Whether it does so and nobody has seen the keys for a while."""
    lost: dict[Place, Mark] = field(default_factory=dict)
    """What somebody deleted or changed of its objects, and is to be put right now."""

    @property
    def meta(self) -> ObjectMeta:
        """The TrainJob's metadata."""
        return self.job.view.metadata

    @property
    def restarts_before(self) -> int:
        """How often the TrainJob was restarted before its JobSet was created, or before the one that is created now."""
        if self.jobset is None:
            return self.job.view.status.restarts
        return self.jobset.attempt - self.jobset.status.restarts

    @property
    def needs_mending(self) -> bool:
        """Whether something that it has beside its JobSet is to be put right, or looked at."""
        return bool(self.lost) or self.awaits_keys

    def put_off(self, seconds: float) -> None:
        """Let it be met again in so many seconds, or sooner."""
        self.later = seconds if self.later is None else min(self.later, seconds)
