"""The status of a job of v1 while it is being made.

Old clients and Kueue read it as the old operator writes it: a reason is the kind followed by what happened; Running and
Restarting exclude each other; the last condition is the state that `kubectl get` shows, so one that turns True goes to
the end; nothing changes once a job has failed. What is no longer so at the job's end, or while it is suspended, turns
False.
"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import tree as trees
from trainplane.api.legacy import names
from trainplane.api.moments import read_moment
from trainplane.lifecycle.events import EventContent

if TYPE_CHECKING:
    from datetime import datetime

    from trainplane.api.tree import Tree
    from trainplane.legacy.job import Job
    from trainplane.legacy.tally import Counts

RESUMED: Final = "Resumed"
_OPPOSITE: Final = {names.RUNNING: names.RESTARTING, names.RESTARTING: names.RUNNING}
_ENDS: Final = (names.SUCCEEDED, names.FAILED)
_PASSING: Final = (names.RUNNING, names.RESTARTING)
_BAD: Final = (names.FAILED, names.RESTARTING)


def written(moment: datetime) -> str:
    """Return a time as Kubernetes writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Status:
    """A job's status, and the news of what changes in it."""

    def __init__(self, job: Job, now: datetime) -> None:
        self._kind = job.kind
        self._before = trees.fields(job.tree, "status")
        self._now = written(now)
        self.tree: Tree = {**self._before, "conditions": trees.entries(self._before, "conditions")}
        self.events: list[EventContent] = []

    @property
    def changed(self) -> Tree | None:
        """The status as it is to be; None if it is so already."""
        return None if self.tree == self._before else self.tree

    def has(self, condition: str) -> bool:
        """Return whether a condition is True."""
        return any(one.get("type") == condition and one.get("status") == "True" for one in self._conditions)

    @property
    def is_finished(self) -> bool:
        """Whether the job is over."""
        return any(self.has(one) for one in _ENDS)

    @property
    def ended(self) -> datetime | None:
        """When the job was over; the old operator leaves out completionTime where an exit code failed the job."""
        ends = [one.get("lastTransitionTime") for one in self._conditions if one.get("type") in _ENDS]
        return read_moment(self.tree.get("completionTime") or next(iter(ends), None))

    def state(self, condition: str, message: str, *, because: str = "") -> None:
        """Let a condition be True, for the reason of its own name or of another."""
        self._set(condition, "True", because or condition, message)

    def deny(self, condition: str, message: str, *, because: str) -> None:
        """Let a condition be False."""
        self._set(condition, "False", because, message)

    def end(self, condition: str, message: str) -> None:
        """Let the job be over."""
        if not self.has(names.FAILED):
            self.tree.setdefault("completionTime", self._now)
            self.state(condition, message)
            for one in _PASSING:
                self.withdraw(one)

    def withdraw(self, condition: str) -> None:
        """Let a condition that is True be so no longer, in its place and for the reason that it had."""
        self.tree["conditions"] = [
            {**one, "status": "False", "lastUpdateTime": self._now, "lastTransitionTime": self._now}
            if one.get("type") == condition and one.get("status") == "True"
            else one
            for one in self._conditions
        ]

    def begin(self, *, anew: bool = False) -> None:
        """Let the job have begun now, if it has not before; anew even so."""
        if anew or not self.tree.get("startTime"):
            self.tree["startTime"] = self._now

    def count(self, replica_type: str, counts: Counts, selector: str) -> None:
        """Set the counts of a type."""
        found: Tree = {"active": counts.active, "succeeded": counts.succeeded, "failed": counts.failed}
        found = {name: number for name, number in found.items() if number}
        if selector:
            found["selector"] = selector
        self._replicas = {**self._replicas, replica_type: found}

    def stop_counting(self, *, as_succeeded: bool) -> None:
        """Count none as active any more, and those who were as succeeded, or not."""
        for replica_type, said in self._replicas.items():
            counts = dict(said)
            active = counts.pop("active", 0)
            if as_succeeded and active:
                counts["succeeded"] = counts.get("succeeded", 0) + active
            self._replicas = {**self._replicas, replica_type: counts}

    @property
    def _conditions(self) -> list[Tree]:
        found: list[Tree] = self.tree["conditions"]
        return found

    @property
    def _replicas(self) -> dict[str, Tree]:
        said = trees.fields(self.tree, "replicaStatuses")
        return {name: one for name, one in said.items() if isinstance(one, dict)}

    @_replicas.setter
    def _replicas(self, found: dict[str, Tree]) -> None:
        self.tree["replicaStatuses"] = found

    def _set(self, condition: str, status: str, reason: str, message: str) -> None:
        if self.has(names.FAILED):
            return
        reason = f"{self._kind.name}{reason}"
        before: Any = trees.get(self._conditions, ("type", condition))
        if before is not None and (before.get("status"), before.get("reason")) == (status, reason):
            return
        since = before.get("lastTransitionTime") if before and before.get("status") == status else None
        others = [one for one in self._conditions if one.get("type") not in (condition, _OPPOSITE.get(condition))]
        self.tree["conditions"] = [
            *others,
            {
                "type": condition,
                "status": status,
                "reason": reason,
                "message": message,
                "lastUpdateTime": self._now,
                "lastTransitionTime": since or self._now,
            },
        ]
        if status == "True" or reason.endswith(RESUMED):
            self.events.append(EventContent("Warning" if condition in _BAD else "Normal", reason, message))
