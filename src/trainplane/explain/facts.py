"""Facts: all that is known of one TrainJob at one time, from whoever could be asked. What explains it, explains this.

Everything but the TrainJob may be missing: a user may not read nodes, pods are gone, there is no hub. What could not be
read is named in `unread`, so that silence is not taken for an answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from trainplane.api import tree as trees
from trainplane.explain.places import name_places
from trainplane.explain.pods import index_of, newest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from trainplane.api.podindex import PodIndex
    from trainplane.api.tree import Tree

MOST_LOGS: Final = 64
"""Steps whose logs are asked for: of thousands, more do not tell more."""


class Line(NamedTuple):
    """A line of a log."""

    text: str
    time: datetime | None = None
    """When it was printed, by its node's clock."""


@dataclass(frozen=True)
class Facts:
    """What is known of a TrainJob."""

    job: Tree
    pods: Sequence[Tree] = ()
    """Its pods, former ones too."""
    events: Sequence[Tree] = ()
    """Of the TrainJob and all that it is made of, in the order of time."""
    jobset: Tree | None = None
    jobs: Sequence[Tree] = ()
    """The Jobs of its JobSet."""
    workload: Tree | None = None
    """Kueue's Workload of it."""
    nodes: Sequence[Tree] = ()
    """The nodes that its pods are on; where one waits for a node, those that it could be on."""
    view: Tree | None = None
    """The hub's view of it, if it is dispatched."""
    queue: Tree | None = None
    """The hub's answer to why it is queued."""
    logs: Mapping[str, Sequence[Line]] = field(default_factory=dict)
    """The end of each step's log."""
    unread: Sequence[str] = ()
    """What could not be read, and why: `nodes: forbidden`."""

    @property
    def name(self) -> str:
        """The TrainJob's name."""
        return trees.text(self.job, "metadata", "name") or "the TrainJob"

    def steps(self) -> dict[str, Tree]:
        """Return the pod that has each step now."""
        return self._steps

    def step_of(self, pod: Tree) -> str:
        """Return what people call the place of a pod."""
        place = index_of(pod)
        return self._called.get(place, "") if place else ""

    @cached_property
    def _called(self) -> dict[PodIndex, str]:
        return name_places(self.pods, self.job)

    @cached_property
    def _steps(self) -> dict[str, Tree]:
        return {self._called[place]: pod for place, pod in newest(self.pods).items()}
