"""What has become of a job's pods: how many run, succeeded and failed, and how each that failed ended.

A pod that is deleted while it runs (its node is drained, somebody deletes it) counts as failed: it reaches no end of
its own. But one that is still going from before the job was resumed belongs to no run: it only keeps its successor
waiting.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import tree as trees
from trainplane.api.legacy import names
from trainplane.api.moments import read_moment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from trainplane.api.tree import Tree
    from trainplane.legacy.job import Job, Member

SIGNALLED: Final = 128
"""From this exit code on, a process was ended from without: such an end may be tried again."""
_REASON_LETTERS: Final = 64


@dataclass(slots=True)
class Counts:
    """Pods of one type."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Ending:
    """How a pod failed."""

    member: Member
    pod: Tree
    code: int | None
    """The exit code of the training container; None if it has none."""
    reason: str
    is_restarted: bool
    """Whether another pod takes its place."""

    @property
    def name(self) -> str:
        """The pod's name."""
        return trees.text(self.pod, "metadata", "name") or ""

    @property
    def is_going(self) -> bool:
        """Whether the pod is being deleted already."""
        return is_terminating(self.pod)

    def __str__(self) -> str:
        how = f"ended with exit code {self.code}" if self.code is not None else "ended without an exit code"
        if phase(self.pod) != "Failed":
            how = "was deleted while it ran"
        because = f" ({self.reason})" if self.reason else ""
        return f"pod {self.name} {how}{because}"


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts by type, and those that ended."""

    counts: dict[str, Counts]
    succeeded: set[Member] = field(default_factory=set)
    failed: list[Ending] = field(default_factory=list)


def count_pods(job: Job, pods: Mapping[str, Tree], started: datetime | None) -> Tally:
    """Count the pods that the job asks for, given by their names, in the run that started then."""
    found = Tally({one: Counts() for one in (*job.replicas, *job.kind.types)})
    for member in job.members():
        pod = pods.get(job.pod_name(*member))
        if pod is None or _is_of_earlier_run(pod, started):
            continue
        counts, now = found.counts[member.type], phase(pod)
        if now == "Succeeded":
            counts.succeeded += 1
            found.succeeded.add(member)
        elif now == "Failed" or (now == "Running" and is_terminating(pod)):
            counts.failed += 1
            found.failed.append(_ending(job, member, pod))
        elif now == "Running":
            counts.active += 1
    return found


def phase(pod: Tree) -> str:
    """Return a pod's phase."""
    return trees.text(pod, "status", "phase") or ""


def is_terminating(pod: Tree) -> bool:
    """Return whether a pod is being deleted."""
    return trees.get(pod, "metadata", "deletionTimestamp") is not None


def restarts(pod: Tree) -> int:
    """Return how often the kubelet started containers of a pod again."""
    kinds = ("containerStatuses", "initContainerStatuses")
    statuses = [one for kind in kinds for one in trees.entries(pod, "status", kind)]
    return sum(trees.number(one, "restartCount") or 0 for one in statuses)


def _is_of_earlier_run(pod: Tree, started: datetime | None) -> bool:
    """Return whether a pod is going from before the run started.

    Moments are whole seconds, and Kueue may admit, preempt and admit a job again within one. So it counts, too, when
    the deletion was asked for: its grace period before the time that stands there.
    """
    going = read_moment(trees.get(pod, "metadata", "deletionTimestamp"))
    if going is None or started is None:
        return False
    made = read_moment(trees.get(pod, "metadata", "creationTimestamp"))
    grace = trees.number(pod, "metadata", "deletionGracePeriodSeconds") or 0
    return (going - started).total_seconds() <= grace or (made is not None and made < started)


def _ending(job: Job, member: Member, pod: Tree) -> Ending:
    statuses = ("status", "containerStatuses", ("name", job.kind.container), "state", "terminated")
    code = trees.number(pod, *statuses, "exitCode")
    reason = trees.text(pod, "status", "reason") or trees.text(pod, *statuses, "reason") or ""
    policy = job.replicas[member.type].restart
    return Ending(member, pod, code, _short(reason), _is_restarted(policy, code))


def _is_restarted(policy: str, code: int | None) -> bool:
    if policy == names.RESTART_EXIT_CODE:
        return code is None or code >= SIGNALLED
    return policy in (names.RESTART_ALWAYS, names.RESTART_ON_FAILURE)


def _short(reason: Any) -> str:
    return str(reason)[:_REASON_LETTERS]
